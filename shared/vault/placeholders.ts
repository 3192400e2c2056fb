/** Finds the placeholders in a request with a secret, and replaces the placeholders by the credential's values. */
import { OutOfBoundsError } from './bounds/bounds.ts'
import { type CredentialData, CredentialInputError, totpKeyOf } from './credential.ts'
import { SECRET_MIN_LENGTH } from './maskSecrets.ts'
import { mayStand } from './placement.ts'
import { totpCode } from './totp.ts'

export const PLACEHOLDER = /\{\{\s*([A-Za-z][\w-]{0,63})\s*\}\}/g
/**
 * Sets the maximum number of characters of a placeholder's value, because a longer value does not fit into an HTTP
 * header.
 */
export const VALUE_MAX_LENGTH = 8_192
/**
 * Sets the minimum length of a secret that the masker hides in a response although the request did not contain it.
 * Shorter values may be everyday words, and their masking would damage the response.
 */
const UNSENT_MIN_LENGTH = 4
const SHOWN_PLACE_MAX_LENGTH = 100
/**
 * Sets the maximum number of placeholders in one request, because each placeholder needs a check of its position in the
 * request, and its value may be long.
 */
const PLACEHOLDERS_MAX = 100

/** Holds the parts of a credential that can replace placeholders. */
export type UsedCredential = {
  type: string
  data: CredentialData
  metadata: Record<string, unknown>
}

/**
 * Replaces the placeholders in one text by the credential's values.
 * @param places returns the names of the places in the request (such as a header or the body) to which the placeholder
 * belongs. The number `at` is the position of the placeholder in the text. The credential must allow its secret in one
 * of these places.
 * @param write escapes a value so that the value is valid at the place of the placeholder.
 * @throws {CredentialInputError} if a placeholder has no value. @throws {OutOfBoundsError} if the credential does not
 * allow a secret at the place of its placeholder.
 */
export type Fill = (
  text: string,
  places: (at: number) => readonly string[],
  write: (value: string, field: string) => string,
) => string

/**
 * Creates the function that replaces placeholders by the credential's values. @param sent collects the secrets in the
 * filled-in request.
 */
export function createFill(
  credential: UsedCredential,
  { placement, nowMs, sent }: { placement: readonly string[]; nowMs: number; sent: Set<string> },
): Fill {
  const values = valuesOf(credential, nowMs)
  let filled = 0
  return (text, places, write) =>
    text.replaceAll(PLACEHOLDER, (_all, field: string, at: number) => {
      if (++filled > PLACEHOLDERS_MAX) {
        throw fault(`request must hold at most ${PLACEHOLDERS_MAX} placeholders`)
      }
      const { text: value, isSecret, secrets, names } = values(field)
      if (isSecret) {
        const here = places(at)
        if (!mayStand(placement, names, here)) {
          const where = here[0]!.slice(0, SHOWN_PLACE_MAX_LENGTH)
          throw new OutOfBoundsError(`must not have {{${field}}} at ${where}: see its placement`)
        }
        for (const secret of secrets) sent.add(secret)
      }
      return write(value, field)
    })
}

const fault = (message: string) => new CredentialInputError(message)

type Value = {
  text: string
  isSecret: boolean
  secrets: string[]
  /** Lists every name that the credential's field may have in a placeholder. */
  names: string[]
}

/** Returns a function that finds the value of a credential field by its name. */
function valuesOf({ type, data, metadata }: UsedCredential, nowMs: number) {
  const own = (fields: Record<string, unknown>, name: string): string | null => {
    const value = Object.hasOwn(fields, name) ? fields[name] : undefined
    return typeof value === 'string' || typeof value === 'number' ? String(value) : null
  }
  return (field: string): Value => {
    if (field === 'totp') {
      const key = totpKeyOf(type, data)
      if (key === null) throw fault('{{totp}} has no value: the credential has no TOTP secret')
      const { code } = totpCode(key, nowMs)
      return { text: code, isSecret: true, secrets: [code], names: [field] }
    }
    if (field === 'secret' && type === 'TOTP') {
      throw fault('{{secret}} is a TOTP secret: use {{totp}}')
    }
    const secretOf = (name: string) => own(data, name) ?? own(metadata, name)
    const stored = secretOf(field)
    const text =
      stored ??
      (field === 'apiKey' ? own(data, 'key') : null) ??
      (field === 'basicAuth' ? basicAuth(secretOf('username'), own(data, 'password')) : null)
    if (text === null) throw fault(`{{${field}}} has no value in this credential`)
    if (text.length < SECRET_MIN_LENGTH || text.length > VALUE_MAX_LENGTH) {
      throw fault(
        `{{${field}}} must stand for ${SECRET_MIN_LENGTH} to ${VALUE_MAX_LENGTH} characters`,
      )
    }
    if (!text.isWellFormed()) throw fault(`{{${field}}} must stand for well-formed text`)
    const isSecret = own(data, field) !== null || own(metadata, field) === null
    const isJoined = field === 'basicAuth' && stored === null
    const secrets = isJoined ? [text, own(data, 'password')!] : [text]
    // If a credential has no field apiKey, the placeholders {{apiKey}} and {{key}} both stand for its field key.
    const isKey = (field === 'apiKey' || field === 'key') && own(data, 'apiKey') === null
    return { text, isSecret, secrets, names: isKey ? ['key', 'apiKey'] : [field] }
  }
}

const basicAuth = (username: string | null, password: string | null): string | null =>
  password === null ? null : Buffer.from(`${username ?? ''}:${password}`).toString('base64')

/**
 * Returns all secrets of a credential, including secrets that the request does not contain. The masker searches the
 * response for them too, because a server may know more secrets than the request contains.
 */
export function unsentSecrets({ type, data }: UsedCredential, nowMs: number): string[] {
  const texts: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value === 'object' && value !== null)
      for (const one of Object.values(value)) collect(one)
    else if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
  }
  collect(data)
  const key = totpKeyOf(type, data)
  if (key !== null) {
    // The masker also masks the one-time codes of the time steps before and after, because the server's clock may
    // differ by one step.
    for (const step of [-1, 0, 1]) texts.push(totpCode(key, nowMs + step * key.periodS * 1000).code)
    texts.push(...texts.map(bareSeed))
  }
  return texts.filter((text) => text.length >= UNSENT_MIN_LENGTH)
}

/**
 * Returns the TOTP secret in a text as a server shows it: in Base32 without blanks, hyphens and padding. @returns an
 * empty text if the text holds no TOTP secret.
 */
function bareSeed(text: string): string {
  const isUri = /^\s*otpauth:/i.test(text) && URL.canParse(text)
  const named = isUri ? [...new URL(text).searchParams] : [['secret', text] as const]
  const seed = named.find(([name]) => name.toLowerCase() === 'secret')?.[1] ?? ''
  return /^[a-z2-7\s=-]+$/i.test(seed) ? seed.replace(/[\s=-]/g, '') : ''
}
