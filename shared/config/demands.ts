/** Checks the rules that concern several settings at once, only production, or only some processes. */
import type { z } from 'zod'
import { DEVNET_ACCOUNTS } from '../till/devnetAccounts.ts'
import type { Fault } from './configError.ts'
import { isSafeRelayTls } from './mailTls.ts'
import { BLOB_SECRET, INBOUND_SECRET, type ReadSecret, type Secret } from './secrets.ts'
import type { variables } from './variables.ts'

type Values = z.output<typeof variables>

const devnetKeys: readonly string[] = Object.values(DEVNET_ACCOUNTS).flatMap((account) =>
  'privateKey' in account ? [account.privateKey] : [],
)

/** Tells whether one of the given private keys is a published key of the devnet. */
export const holdsDevnetKey = (keys: readonly string[]): boolean =>
  keys.some((key) => devnetKeys.includes(key.toLowerCase()))

/**
 * Returns every rule that the settings break. The error lists all broken rules, so that an operator can fix all broken
 * rules at once.
 * @param secrets lists the secrets that the process uses. In production the operator must set all of them.
 */
export function brokenDemands(values: Values, secrets: readonly ReadSecret[]): Fault[] {
  const isProduction = values.NODE_ENV === 'production'
  const demands = (secret: Secret) => isProduction && secrets.includes(secret)
  const rules: [variable: string, isBroken: boolean, rule: string][] = [
    [
      'SMTP_RELAY_URL',
      demands('SMTP_RELAY_URL') && (values.SMTP_RELAY_URL ?? 'capture') === 'capture',
      'must name a smarthost or be direct when NODE_ENV is production; capture sends nothing',
    ],
    ...tlsRules(values),
    ...companyRules(values),
    [
      'RPC_URL',
      demands('RPC_URL') && values.RPC_URL === undefined,
      'must be set when NODE_ENV is production; the embedded devnet moves no money',
    ],
    [
      'RPC_QUORUM',
      secrets.includes('RPC_URL') && (values.RPC_QUORUM ?? 1) > (values.RPC_URL?.length ?? 1),
      'must be at most the number of URLs in RPC_URL',
    ],
    [
      'SETTLEMENT_KEYS',
      demands('SETTLEMENT_KEYS') && !areOwnKeys(values.SETTLEMENT_KEYS),
      'must be keys of your own when NODE_ENV is production; those of the devnet are public',
    ],
    [
      'RECEIPT_SIGNING_KEYS',
      demands('RECEIPT_SIGNING_KEYS') && isEmpty(values.RECEIPT_SIGNING_KEYS),
      'must be set when NODE_ENV is production; one is generated in development only',
    ],
    [
      'MASTER_KEYS',
      demands('MASTER_KEYS') && isEmpty(values.MASTER_KEYS),
      'must be set when NODE_ENV is production; one is generated in development only',
    ],
    ...(secrets.includes(BLOB_SECRET) ? blobRules(values) : []),
    [
      'INBOUND_SECRETS',
      secrets.includes(INBOUND_SECRET) &&
        !isEmpty(values.INBOUND_SES_TOPICS) &&
        isEmpty(values.INBOUND_SECRETS),
      'it is missing, and must be set with INBOUND_SES_TOPICS',
    ],
  ]
  return rules.flatMap(([variable, isBroken, rule]) => (isBroken ? [{ variable, rule }] : []))
}

type Rule = [variable: string, isBroken: boolean, rule: string]

const isEmpty = (keys: readonly string[] | undefined): boolean => (keys ?? []).length === 0
const areOwnKeys = (keys: readonly string[] | undefined): boolean =>
  keys !== undefined && keys.length > 0 && !holdsDevnetKey(keys)

function tlsRules(values: Values): Rule[] {
  const { SMTP_TLS_CERT_FILE: certFile, SMTP_TLS_KEY_FILE: keyFile } = values
  const missing = 'it is missing, and must be set with its counterpart'
  return [
    ['SMTP_TLS_CERT_FILE', certFile === undefined && keyFile !== undefined, missing],
    ['SMTP_TLS_KEY_FILE', keyFile === undefined && certFile !== undefined, missing],
    [
      'SMTP_RELAY_TLS',
      !isSafeRelayTls(values),
      'must be required when SMTP_RELAY_URL holds credentials; off is for a relay on this machine',
    ],
  ]
}

function companyRules(values: Values): Rule[] {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, NODE_ENV } = values
  const missing = 'it is missing, and must be set with its counterpart'
  return [
    ['OIDC_ISSUER', issuer === undefined && clientId !== undefined, missing],
    ['OIDC_CLIENT_ID', clientId === undefined && issuer !== undefined, missing],
    [
      'OIDC_ISSUER',
      NODE_ENV === 'production' && issuer?.startsWith('http:') === true,
      'must start with https:// when NODE_ENV is production',
    ],
  ]
}

function blobRules(values: Values): Rule[] {
  const isUsed = values.BLOB_STORE !== undefined || values.INBOUND_SES_BUCKET !== undefined
  const missing = 'it is missing, and must be set with BLOB_STORE and INBOUND_SES_BUCKET'
  return [
    ['S3_ACCESS_KEY_ID', isUsed && values.S3_ACCESS_KEY_ID === undefined, missing],
    ['S3_SECRET_ACCESS_KEY', isUsed && values.S3_SECRET_ACCESS_KEY === undefined, missing],
  ]
}
