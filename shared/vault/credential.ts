import { DIGITS_RULE, losesDigits } from '../wholeNumbers.ts'
import { parseTotpSecret, type TotpKey, TotpSecretError } from './totp.ts'

/** Lists the kinds of credentials (docs/contract.md §5). */
export const CREDENTIAL_TYPES = [
  'LOGIN',
  'API_KEY',
  'OAUTH',
  'TOTP',
  'SSH_KEY',
  'DATABASE',
  'SMTP',
  'AWS',
  'CERTIFICATE',
  'CUSTOM',
  'CARD',
  'SHIPPING_ADDRESS',
] as const

export type CredentialType = (typeof CREDENTIAL_TYPES)[number]
export type CredentialData = Record<string, unknown>

/**
 * Reports that a credential is malformed. The error's `message` names the field of the credential and states the rule
 * for its value. The error's message quotes no value of the credential.
 */
export class CredentialInputError extends Error {}

export const NAME_MAX_LENGTH = 128
export const DATA_MAX_BYTES = 64 * 1024
export const METADATA_MAX_BYTES = 16 * 1024
const DEPTH_MAX = 32

/**
 * Holds the placeholder text that API responses show instead of a TOTP secret. The totp operation returns one-time
 * codes, and no API operation returns the TOTP secret itself.
 */
export const TOTP_MARKER = '[use /v0/vault/:name/totp]'

type Kind = 'text' | 'texts' | 'number or text'
type Fields = Record<string, Kind>

const KIND_WORDS: Record<Kind, string> = {
  text: 'a string',
  texts: 'an array of strings',
  'number or text': 'a number or a string',
}

/** Lists the fields that the `data` of every credential type may have. */
const ANY_DATA: Fields = { totp: 'text', backupCodes: 'texts', usedBackupCodes: 'texts' }

/**
 * Lists the known fields of each credential type. Only one known field is required: the secret of a TOTP credential. A
 * credential may also have unknown fields.
 */
const SHAPES: Record<CredentialType, { data: Fields; metadata: Fields }> = {
  LOGIN: {
    data: { username: 'text', password: 'text' },
    metadata: { uri: 'text', username: 'text' },
  },
  API_KEY: {
    data: { key: 'text', clientId: 'text', secret: 'text' },
    metadata: { service: 'text', prefix: 'text', clientId: 'text' },
  },
  OAUTH: {
    data: { accessToken: 'text', refreshToken: 'text', clientId: 'text', clientSecret: 'text' },
    metadata: { provider: 'text', clientId: 'text' },
  },
  TOTP: { data: { secret: 'text' }, metadata: { issuer: 'text', account: 'text' } },
  SSH_KEY: {
    data: { privateKey: 'text', passphrase: 'text' },
    metadata: { host: 'text', username: 'text', publicKey: 'text', fingerprint: 'text' },
  },
  DATABASE: {
    data: { password: 'text', connectionString: 'text' },
    metadata: { host: 'text', port: 'number or text', database: 'text', username: 'text' },
  },
  SMTP: {
    data: { password: 'text' },
    metadata: { host: 'text', port: 'number or text', username: 'text' },
  },
  AWS: {
    data: { accessKeyId: 'text', secretAccessKey: 'text', sessionToken: 'text' },
    metadata: { accessKeyId: 'text', region: 'text', accountId: 'text' },
  },
  CERTIFICATE: {
    data: { certificate: 'text', privateKey: 'text', passphrase: 'text' },
    metadata: { commonName: 'text', issuer: 'text', fingerprint: 'text' },
  },
  CUSTOM: { data: {}, metadata: {} },
  CARD: {
    data: {
      cardholder: 'text',
      number: 'text',
      cvc: 'text',
      expMonth: 'number or text',
      expYear: 'number or text',
      zip: 'text',
    },
    metadata: { brand: 'text', last4: 'text' },
  },
  SHIPPING_ADDRESS: {
    data: {
      name: 'text',
      line1: 'text',
      line2: 'text',
      city: 'text',
      state: 'text',
      postcode: 'text',
      country: 'text',
      phone: 'text',
    },
    metadata: {},
  },
}

/** Lists the known fields of a credential type, in words for the documentation. */
export const describeShape = (type: CredentialType): string =>
  (['data', 'metadata'] as const)
    .flatMap((part) => Object.keys(SHAPES[type][part]).map((field) => `${part}.${field}`))
    .join(', ')

/**
 * Checks the name of a credential: 1 to 128 code points of any script, without control characters.
 * @throws {CredentialInputError} if the name is malformed.
 */
export function checkName(name: string): void {
  const length = [...name].length
  if (length < 1 || length > NAME_MAX_LENGTH || /\p{Cc}/u.test(name) || !name.isWellFormed()) {
    throw new CredentialInputError(
      `name must be 1 to ${NAME_MAX_LENGTH} characters without control characters`,
    )
  }
}

/**
 * Checks the content of a credential.
 * @throws {CredentialInputError} for the first fault that the check finds.
 */
export function checkContent(content: {
  type: string
  data: unknown
  metadata: unknown
}): asserts content is {
  type: CredentialType
  data: CredentialData
  metadata: Record<string, unknown>
} {
  const { type, data, metadata } = content
  if (!(CREDENTIAL_TYPES as readonly string[]).includes(type)) {
    throw new CredentialInputError(`type must be one of ${CREDENTIAL_TYPES.join(', ')}`)
  }
  checkObject('data', data, DATA_MAX_BYTES)
  checkObject('metadata', metadata, METADATA_MAX_BYTES)
  if (Object.keys(data).length === 0) {
    throw new CredentialInputError('data must hold at least one field')
  }
  const shape = SHAPES[type as CredentialType]
  checkFields('data', data, { ...ANY_DATA, ...shape.data })
  checkFields('metadata', metadata, shape.metadata)
  if (type === 'TOTP' && data.secret === undefined && data.totp === undefined) {
    throw new CredentialInputError('data.secret must hold the TOTP secret')
  }
  for (const field of totpFields(type, data)) readTotp(field, data[field] as string)
}

function checkObject(
  name: string,
  value: unknown,
  maxBytes: number,
): asserts value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CredentialInputError(`${name} must be a JSON object`)
  }
  // The function checks the nesting of a credential's data first, because on very deep nesting, JSON.stringify and
  // PostgreSQL would fail.
  if (isDeeperThan(value, DEPTH_MAX)) {
    throw new CredentialInputError(`${name} must not nest deeper than ${DEPTH_MAX} levels`)
  }
  if (losesDigits(value)) throw new CredentialInputError(`${name} must ${DIGITS_RULE}`)
  if (Buffer.byteLength(JSON.stringify(value)) > maxBytes) {
    throw new CredentialInputError(`${name} must be at most ${maxBytes} bytes of JSON`)
  }
}

const isDeeperThan = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1)))

function checkFields(part: string, value: Record<string, unknown>, fields: Fields): void {
  for (const [field, kind] of Object.entries(fields)) {
    if (Object.hasOwn(value, field) && !isOfKind(value[field], kind)) {
      throw new CredentialInputError(`${part}.${field} must be ${KIND_WORDS[kind]}`)
    }
  }
}

function isOfKind(value: unknown, kind: Kind): boolean {
  if (kind === 'texts') return Array.isArray(value) && value.every((v) => typeof v === 'string')
  return typeof value === 'string' || (kind === 'number or text' && typeof value === 'number')
}

/**
 * Returns the fields of a credential that hold a TOTP secret. The service computes the one-time codes of a credential
 * from the first of these fields.
 */
const totpFields = (type: string, data: CredentialData): ('secret' | 'totp')[] => [
  ...(type === 'TOTP' && typeof data.secret === 'string' ? (['secret'] as const) : []),
  ...(typeof data.totp === 'string' ? (['totp'] as const) : []),
]

function readTotp(field: string, text: string): TotpKey {
  try {
    return parseTotpSecret(text)
  } catch (error) {
    if (!(error instanceof TotpSecretError)) throw error
    throw new CredentialInputError(`data.${field} must ${error.message}`)
  }
}

/** Tells whether the credential holds a TOTP secret. */
export const hasTotp = (type: string, data: CredentialData): boolean =>
  totpFields(type, data).length > 0

/** Returns the TOTP key of a credential. Null means that the credential has no TOTP secret. */
export function totpKeyOf(type: string, data: CredentialData): TotpKey | null {
  const [field] = totpFields(type, data)
  return field === undefined ? null : readTotp(field, data[field] as string)
}

/** Returns the data of a credential in which a fixed text replaces each TOTP secret. */
export function shownData(type: string, data: CredentialData): CredentialData {
  const shown = { ...data }
  for (const field of totpFields(type, data)) shown[field] = TOTP_MARKER
  return shown
}

const texts = (value: unknown): string[] => (Array.isArray(value) ? (value as string[]) : [])

/** Counts the unused backup codes of a credential. */
export const unusedBackupCodes = (data: CredentialData): number => texts(data.backupCodes).length

/** Returns the backup codes of a credential that were used. */
export const usedBackupCodes = (data: CredentialData): string[] => texts(data.usedBackupCodes)

/**
 * Moves the first unused backup code of a credential to the list of used backup codes.
 * @returns null if the credential has no unused backup code.
 */
export function popBackupCode(
  data: CredentialData,
): { code: string; remaining: number; data: CredentialData } | null {
  const [code, ...left] = texts(data.backupCodes)
  if (code === undefined) return null
  const usedBackupCodes = [...texts(data.usedBackupCodes), code]
  return { code, remaining: left.length, data: { ...data, backupCodes: left, usedBackupCodes } }
}

/**
 * Prepares the data of an old version of a credential before the service restores this version. A backup code that was
 * used after the old version stays marked as used.
 */
export function withoutUsedCodes(old: CredentialData, current: CredentialData): CredentialData {
  const used = new Set(texts(current.usedBackupCodes))
  const [spent, left] = [true, false].map((isUsed) =>
    texts(old.backupCodes).filter((code) => used.has(code) === isUsed),
  ) as [string[], string[]]
  if (spent.length === 0) return old
  const usedBackupCodes = [...new Set([...texts(old.usedBackupCodes), ...spent])]
  return { ...old, backupCodes: left, usedBackupCodes }
}
