import type { RunnerName } from '../tasks.ts'

/** Settings that hold secrets and that production must set. RPC_URL and SMTP_RELAY_URL may hold credentials. */
export const SECRETS = [
  'MASTER_KEYS',
  'RECEIPT_SIGNING_KEYS',
  'SETTLEMENT_KEYS',
  'RPC_URL',
  'SMTP_RELAY_URL',
] as const
export type Secret = (typeof SECRETS)[number]

/** The secrets of each process and of each worker pool (docs/operating.md). No process reads the keys of another. */
export const SECRETS_OF: Record<'api' | 'smtp' | 'migrate' | RunnerName, readonly Secret[]> = {
  api: ['MASTER_KEYS', 'RECEIPT_SIGNING_KEYS'],
  smtp: [],
  migrate: [],
  inbound: ['MASTER_KEYS'],
  outbound: ['MASTER_KEYS', 'SMTP_RELAY_URL'],
  webhooks: ['MASTER_KEYS'],
  payments: ['RECEIPT_SIGNING_KEYS', 'SETTLEMENT_KEYS', 'RPC_URL'],
}
