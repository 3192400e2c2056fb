/**
 * The HTTPS request of a use: its bounds, its placeholders and their values.
 *
 * A placeholder is `{{field}}`. It may stand in the path, the query, the value of a header, and the body; never in the
 * method, the host, or the name of a header.
 */
import { type CredentialData, CredentialInputError, totpKeyOf } from './credential.ts'
import { SECRET_MIN_LENGTH } from './maskSecrets.ts'
import { totpCode } from './totp.ts'

export const USE_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type UseMethod = (typeof USE_METHODS)[number]

export const URL_MAX_LENGTH = 4_096
export const HEADERS_MAX = 40
const HEADER_VALUE_MAX_LENGTH = 8_192
const USE_BODY_MAX_BYTES = 256 * 1024
const HEADERS_MAX_LENGTH = 16 * 1024
/** Longer values fit into no header. */
const VALUE_MAX_LENGTH = 8_192
/** Each value costs a search in the answer. */
const SECRETS_MAX = 64
/** A value that is not sent is masked only if it is no everyday word. */
const UNSENT_MIN_LENGTH = 4

/** A request as a caller gives it, with placeholders. */
export type UseRequest = {
  method: UseMethod
  url: string
  headers: Record<string, string>
  body: string | null
}

/** Its parts for the audit log. They hold no secret: placeholders stay. */
export type UseTarget = { method: UseMethod; host: string; path: string }

/** The part of a credential that fills the placeholders. */
export type UsedCredential = {
  type: string
  data: CredentialData
  metadata: Record<string, unknown>
}

const PLACEHOLDER = /\{\{\s*([A-Za-z][\w-]{0,63})\s*\}\}/g
const HTTPS_URL = /^https:\/\/([^/?#\\]+)([/?][^#]*)?$/i
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]{1,128}$/
/** RFC 9110 §5.5, without obs-text: some servers read such bytes as Latin-1, some as UTF-8. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/
/** Headers that the connection writes, or that ask for another kind of answer. */
const OWN_HEADERS = new Set([
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te'],
  ...['trailer', 'expect', 'accept-encoding', 'proxy-authorization', 'proxy-connection'],
])

const fault = (message: string) => new CredentialInputError(message)

/**
 * Checks everything but the placeholders' fields.
 * @throws {CredentialInputError} for the first fault.
 */
export function checkUseRequest(request: UseRequest): UseTarget {
  const { method, url, headers, body } = request
  if (url.length > URL_MAX_LENGTH) {
    throw fault(`request.url must be at most ${URL_MAX_LENGTH} characters`)
  }
  const [, authority, rest = '/'] = HTTPS_URL.exec(url) ?? []
  const plain = `https://${authority}/`
  if (authority === undefined || /[{}@\s%]/.test(authority) || !URL.canParse(plain)) {
    throw fault(
      'request.url must be an https URL without user name and fragment; its host holds no placeholder',
    )
  }
  if (/[\0-\x20\x7f]/.test(rest.replaceAll(PLACEHOLDER, ''))) {
    throw fault('request.url must not contain blanks or control characters')
  }
  checkHeaders(headers)
  if (body !== null && (method === 'GET' || method === 'HEAD')) {
    throw fault(`request.body must be absent with ${method}`)
  }
  if (body !== null && Buffer.byteLength(body) > USE_BODY_MAX_BYTES) {
    throw fault(`request.body must be at most ${USE_BODY_MAX_BYTES} bytes`)
  }
  return { method, host: new URL(plain).host, path: rest.split('?', 1)[0] || '/' }
}

function checkHeaders(headers: Record<string, string>): void {
  const names = Object.keys(headers)
  if (names.length > HEADERS_MAX) {
    throw fault(`request.headers must hold at most ${HEADERS_MAX} headers`)
  }
  const seen = new Set<string>()
  let length = 0
  for (const name of names) {
    const lower = name.toLowerCase()
    const value = headers[name]!
    if (!HEADER_NAME.test(name)) {
      throw fault('request.headers must have names of 1 to 128 letters, digits and hyphens')
    }
    if (OWN_HEADERS.has(lower)) throw fault(`request.headers must not hold ${lower}`)
    if (seen.has(lower)) throw fault(`request.headers must hold ${lower} once`)
    seen.add(lower)
    if (!HEADER_VALUE.test(value) || value.length > HEADER_VALUE_MAX_LENGTH) {
      throw fault(
        `request.headers.${lower} must be at most ${HEADER_VALUE_MAX_LENGTH} visible ASCII characters and blanks`,
      )
    }
    length += name.length + value.length
  }
  if (length > HEADERS_MAX_LENGTH) {
    throw fault(`request.headers must be at most ${HEADERS_MAX_LENGTH} characters together`)
  }
}

/** A request with its values, and every text that its answer must not show. */
export type FilledRequest = {
  method: UseMethod
  url: string
  headers: Record<string, string>
  body: string | null
  secrets: string[]
}

/**
 * Fills in the values of the placeholders.
 * @param nowMs the time of a one-time code.
 * @throws {CredentialInputError} for a placeholder without a value, or a value that does not fit its place.
 */
export function fillRequest(
  request: UseRequest,
  credential: UsedCredential,
  nowMs: number,
): FilledRequest {
  const sent = new Set<string>()
  const values = valuesOf(credential, nowMs)
  const fill = (text: string, write: (value: string, field: string) => string) =>
    text.replaceAll(PLACEHOLDER, (_all, field: string) => {
      const value = values(field)
      if (value.isSecret) for (const secret of value.secrets) sent.add(secret)
      return write(value.text, field)
    })
  const [, authority, rest = '/'] = HTTPS_URL.exec(request.url) ?? []
  const url = `https://${authority}${fill(rest, encodeURIComponent)}`
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, fill(value, headerValue)]),
  )
  const escapeBody = bodyEscape(request.headers)
  const body = request.body === null ? null : fill(request.body, escapeBody)
  const secrets = [...new Set([...sent, ...unsentSecrets(credential, nowMs)])]
  if (secrets.length > SECRETS_MAX) {
    throw fault(`A credential with more than ${SECRETS_MAX} values cannot be used`)
  }
  return { method: request.method, url, headers, body, secrets }
}

function headerValue(value: string, field: string): string {
  // CR and LF in a value would begin a header of their own.
  if (HEADER_VALUE.test(value) && value.length <= HEADER_VALUE_MAX_LENGTH) return value
  throw fault(
    `{{${field}}} does not fit into a header: its value has control or non-ASCII characters`,
  )
}

/** How a value is written into a body of this type: it never ends the string that it stands in. */
function bodyEscape(headers: Record<string, string>): (value: string) => string {
  const name = Object.keys(headers).find((one) => one.toLowerCase() === 'content-type')
  const type = (name === undefined ? '' : headers[name]!).toLowerCase().split(';', 1)[0]!.trim()
  if (type === 'application/x-www-form-urlencoded') return encodeURIComponent
  if (type.endsWith('json')) return (value) => JSON.stringify(value).slice(1, -1)
  if (type.endsWith('xml') || type === 'text/html') {
    return (value) => value.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
  }
  return (value) => value
}

type Value = { text: string; isSecret: boolean; secrets: string[] }

/** Finds the value of a field. */
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
      return { text: code, isSecret: true, secrets: [code] }
    }
    if (field === 'secret' && type === 'TOTP') {
      throw fault('{{secret}} is a TOTP secret: use {{totp}}')
    }
    const secretOf = (name: string) => own(data, name) ?? own(metadata, name)
    const text =
      secretOf(field) ??
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
    const secrets = field === 'basicAuth' ? [text, own(data, 'password')!] : [text]
    return { text, isSecret, secrets }
  }
}

const basicAuth = (username: string | null, password: string | null): string | null =>
  password === null ? null : Buffer.from(`${username ?? ''}:${password}`).toString('base64')

/** Every other secret of the credential: a server knows more of them than it was sent. */
function unsentSecrets({ type, data }: UsedCredential, nowMs: number): string[] {
  const texts: string[] = []
  const collect = (value: unknown): void => {
    if (typeof value === 'object' && value !== null)
      for (const one of Object.values(value)) collect(one)
    else if (typeof value === 'string' || typeof value === 'number') texts.push(String(value))
  }
  collect(data)
  const key = totpKeyOf(type, data)
  if (key !== null) {
    // The server's clock may be a period away.
    for (const step of [-1, 0, 1]) texts.push(totpCode(key, nowMs + step * key.periodS * 1000).code)
    for (const text of [...texts])
      if (/^[a-z2-7\s=-]+$/i.test(text)) texts.push(text.replace(/[\s-]/g, ''))
  }
  return texts.filter((text) => text.length >= UNSENT_MIN_LENGTH)
}
