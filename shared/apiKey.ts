import { createHash, randomBytes } from 'node:crypto'

/**
 * Names the kind of an API key. A caller with a `project` key acts as one project. A caller with a `platform` key
 * manages projects and cannot act as a project.
 */
export type KeyKind = 'project' | 'platform'

const PREFIXES: Record<KeyKind, string> = { project: 'loid-', platform: 'lopk-' }
const KEY_FORM = /^(loid|lopk)-[0-9a-f]{64}$/
/**
 * Sets the length of an API key's look-up prefix, which consists of the key type and 12 hexadecimal digits. The API may
 * show these 48 bits of a key, because the rest of the key stays secret.
 */
const LOOKUP_LENGTH = 'loid-'.length + 12

/**
 * Describes the result of parsing an `Authorization` header. Each of the three possible faults leads to a separate
 * error of the API.
 */
export type ParsedAuthorization =
  | { ok: true; key: string }
  | { ok: false; reason: 'header' | 'format' | 'key' }

/**
 * Reads the header `Authorization: Bearer <key>`. The fault `header` means that the header `Authorization` is absent or
 * does not have the scheme Bearer. The fault `format` means that the API key begins with neither `loid-` nor `lopk-`.
 * The fault `key` means that the prefix of the API key is right but the rest is not 64 hexadecimal digits.
 */
export function parseAuthorization(header: string | null): ParsedAuthorization {
  const match = header === null ? null : /^Bearer +(\S+) *$/i.exec(header)
  const key = match?.[1]
  if (key === undefined) return { ok: false, reason: 'header' }
  if (!key.startsWith(PREFIXES.project) && !key.startsWith(PREFIXES.platform)) {
    return { ok: false, reason: 'format' }
  }
  return KEY_FORM.test(key) ? { ok: true, key } : { ok: false, reason: 'key' }
}

/** Generates an API key: a type prefix and 256 random bits, as in `loid-<64 hex>` or `lopk-<64 hex>`. */
export function generateKey(kind: KeyKind): string {
  return PREFIXES[kind] + randomBytes(32).toString('hex')
}

/** Tells whether `key` has the format of an API key of the given kind. */
export function isKey(key: string, kind: KeyKind): boolean {
  return KEY_FORM.test(key) && key.startsWith(PREFIXES[kind])
}

/**
 * Computes the SHA-256 of an API key (32 bytes). A slow password hash would add no security, because an API key holds
 * 256 random bits.
 */
export const hashKey = (key: string): Buffer => createHash('sha256').update(key).digest()

/**
 * Returns the look-up prefix of an API key, which the database stores in clear text and indexes. The API shows the
 * look-up prefix as `apiKeyPrefix`.
 */
export const keyLookupPrefix = (key: string): string => key.slice(0, LOOKUP_LENGTH)
