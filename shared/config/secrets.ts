import type { RunnerName } from '../tasks.ts'

/**
 * Lists the settings with secrets that the operator must set in production. The list includes RPC_URL and
 * SMTP_RELAY_URL, because both may contain credentials.
 */
const SECRETS = [
  'MASTER_KEYS',
  'RECEIPT_SIGNING_KEYS',
  'SETTLEMENT_KEYS',
  'RPC_URL',
  'SMTP_RELAY_URL',
] as const
export type Secret = (typeof SECRETS)[number]

/** Names a process, or a worker pool that runs in its own process. */
export type Part = 'api' | 'smtp' | 'migrate' | RunnerName

/**
 * Lists the secrets of each process and of each worker pool (docs/operating.md). No process reads keys that only
 * another process needs.
 */
export const SECRETS_OF: Record<Part, readonly Secret[]> = {
  api: ['MASTER_KEYS', 'RECEIPT_SIGNING_KEYS'],
  smtp: [],
  migrate: [],
  inbound: ['MASTER_KEYS'],
  outbound: ['MASTER_KEYS', 'SMTP_RELAY_URL'],
  webhooks: ['MASTER_KEYS'],
  vault: ['MASTER_KEYS'],
  purse: ['MASTER_KEYS'],
  payments: ['RECEIPT_SIGNING_KEYS', 'SETTLEMENT_KEYS', 'RPC_URL'],
}

/**
 * Names the secret for the setting BLOB_STORE. BLOB_PARTS lists the processes that read or write large contents of mail
 * and therefore need this secret.
 */
export const BLOB_SECRET = 'S3_SECRET_ACCESS_KEY'
const BLOB_PARTS: readonly Part[] = ['api', 'smtp', 'inbound', 'outbound']

/**
 * Names the setting with the secrets that authenticate mail delivered over HTTP. The HTTP listener checks delivered
 * mail with the secrets of INBOUND_SECRETS. The API derives one secret for each domain from INBOUND_SECRETS.
 */
export const INBOUND_SECRET = 'INBOUND_SECRETS'
const INBOUND_PARTS: readonly Part[] = ['api', 'smtp']

/**
 * Names the OAuth client secret of this service at the company's identity provider. COMPANY_PARTS lists the processes
 * that connect to the identity provider.
 */
export const COMPANY_SECRET = 'OIDC_CLIENT_SECRET'
const COMPANY_PARTS: readonly Part[] = ['webhooks']

/** Names a secret that a process may read. */
export type ReadSecret = Secret | typeof BLOB_SECRET | typeof INBOUND_SECRET | typeof COMPANY_SECRET
export const ALL_SECRETS: readonly ReadSecret[] = [
  ...SECRETS,
  BLOB_SECRET,
  INBOUND_SECRET,
  COMPANY_SECRET,
]

/** Lists the secrets that a process or worker pool reads. */
export const readBy = (part: Part): readonly ReadSecret[] => [
  ...SECRETS_OF[part],
  ...(BLOB_PARTS.includes(part) ? ([BLOB_SECRET] as const) : []),
  ...(INBOUND_PARTS.includes(part) ? ([INBOUND_SECRET] as const) : []),
  ...(COMPANY_PARTS.includes(part) ? ([COMPANY_SECRET] as const) : []),
]
