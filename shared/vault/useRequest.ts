/**
 * Checks an HTTP request that will contain a secret, and replaces the placeholders of the request by their values.
 *
 * A placeholder in the request has the form `{{field}}`. A placeholder may stand in the path, the query, the value of a
 * header, and the body. A placeholder never stands in the method, the host, or the name of a header. A field of a
 * credential's `data` may stand only in a place that the credential's `placement` allows.
 */
import { randomUUID } from 'node:crypto'
import { headerKey } from '../http/headerName.ts'
import { normalUrl } from '../http/normalUrl.ts'
import { REPLACING_HEADERS } from '../http/replacingHeaders.ts'
import { type Bounds, checkBounds, effectiveBounds } from './bounds/bounds.ts'
import type { UseMethod } from './bounds/useMethods.ts'
import { CredentialInputError } from './credential.ts'
import { fillBody, fillPairs } from './fillBody.ts'
import {
  createFill,
  PLACEHOLDER,
  type UsedCredential,
  unsentSecrets,
  VALUE_MAX_LENGTH,
} from './placeholders.ts'

export const URL_MAX_LENGTH = 4_096
export const HEADERS_MAX = 40
const HEADER_VALUE_MAX_LENGTH = VALUE_MAX_LENGTH
const USE_BODY_MAX_BYTES = 256 * 1024
const HEADERS_MAX_LENGTH = 16 * 1024
/**
 * Sets the maximum number of secrets that one request may contain. The number is limited because the masker searches
 * the HTTP response for each secret.
 */
const SECRETS_MAX = 64

/** Describes the HTTP request with a secret as a caller sends it, with placeholders instead of the secret. */
export type UseRequest = {
  method: UseMethod
  url: string
  headers: Record<string, string>
  body: string | null
}

/**
 * Holds the parts of a request with a secret that the audit log records. The recorded parts contain no secret, because
 * they still contain the placeholders. The path is normalised, so that each spelling of a path is one text.
 */
export type UseTarget = { method: UseMethod; host: string; path: string }

const USE_URL = /^(https?):\/\/([^/?#\\]+)([/?][^#]*)?$/i
/** Matches host names and addresses of this machine (RFC 1122 §3.2.1.3, RFC 4291 §2.5.3, RFC 6761 §6.3). */
const LOOPBACK = /^(?:127(?:\.\d{1,3}){3}|\[::1\]|localhost)$/
const HEADER_NAME = /^[!#$%&'*+.^_`|~\w-]{1,128}$/
/**
 * Matches the value of a header by RFC 9110 §5.5 without obs-text (bytes above ASCII). Some servers read obs-text as
 * Latin-1, and others as UTF-8.
 */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/
const OWN_HEADERS = new Set<string>([
  // The HTTP client sets headers such as Host and Content-Length itself, so a caller must not set these headers.
  ...['host', 'content-length', 'transfer-encoding', 'connection', 'keep-alive', 'upgrade', 'te'],
  ...['trailer', 'expect', 'proxy-authorization', 'proxy-connection'],
  // A caller must not set a header such as Accept-Encoding, because the response could then have an encoding that the
  // masker cannot decode.
  ...['accept-encoding', 'accept-charset', 'a-im'],
  // A caller must not set a range header, because a part of the response could begin or end inside a secret, and the
  // masker would not find such a part of a secret.
  ...['range', 'request-range', 'if-range'],
  // A caller must not set conditional and digest headers, because their results could confirm guesses about the masked
  // parts of the response (RFC 9110 §13.1, RFC 9530).
  ...['if-match', 'if-none-match', 'if-modified-since', 'if-unmodified-since'],
  ...['want-digest', 'want-content-digest', 'want-repr-digest'],
  // Some servers take the method, the path or the host from headers such as X-HTTP-Method-Override. A caller must not
  // set these headers, because the service checks a credential's bounds (limits on use) only against the real method,
  // path and host.
  ...['x-http-method-override', 'x-http-method', 'x-method-override'],
  ...REPLACING_HEADERS,
])

/**
 * Lists the headers that tell the service how to read the body. A server could read `Content_Type` as `Content-Type`,
 * and then parse the body in another way than the service. Therefore a request must not contain other spellings of
 * these headers.
 */
const BODY_HEADERS = new Set(['content-type', 'content-encoding'])

const fault = (message: string) => new CredentialInputError(message)

/**
 * Checks a request with a secret. The function does not check the credential fields in the placeholders of the request.
 * @param allowLoopback allows `http://` URLs of this machine in development (ALLOW_PRIVATE_NETWORKS).
 * @throws {CredentialInputError} for the first fault that the check finds.
 */
export function checkUseRequest(
  request: UseRequest,
  { allowLoopback }: { allowLoopback: boolean },
): UseTarget {
  const { method, url, headers, body } = request
  if (url.length > URL_MAX_LENGTH) {
    throw fault(`request.url must be at most ${URL_MAX_LENGTH} characters`)
  }
  const [, scheme = 'https', authority, rest = '/'] = USE_URL.exec(url) ?? []
  const plain = `${scheme}://${authority}/`
  if (authority === undefined || /[{}@\s%]/.test(authority) || !URL.canParse(plain)) {
    throw fault(
      'request.url must be an https URL without user name and fragment; its host holds no placeholder',
    )
  }
  if (
    scheme.toLowerCase() === 'http' &&
    !(allowLoopback && LOOPBACK.test(new URL(plain).hostname))
  ) {
    throw fault(
      'request.url must be an https URL; http is for the own machine only, where ALLOW_PRIVATE_NETWORKS is set',
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
  return { method, ...normalTarget(`${scheme}://${authority}${rest.split('?', 1)[0]}`) }
}

/** Returns the host and the normalised path of a URL whose placeholders stay as `{{field}}`. */
function normalTarget(url: string): { host: string; path: string } {
  const fields: string[] = []
  // The marker that replaces each placeholder is random, so that no text of the caller can imitate it. The marker
  // begins with no hexadecimal digit, so that a `%` before it begins no percent-encoding.
  const marker = `z${randomUUID()}`
  const marked = url.replaceAll(
    PLACEHOLDER,
    (_all, field: string) => `${marker}.${fields.push(field) - 1}.`,
  )
  const { host, path } = normalUrl(marked)
  const marks = new RegExp(`${marker}\\.(\\d+)\\.`, 'g')
  return { host, path: path.replace(marks, (_all, n: string) => `{{${fields[Number(n)]}}}`) }
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
    const key = headerKey(name)
    if (OWN_HEADERS.has(key)) throw fault(`request.headers must not hold ${lower}`)
    if (BODY_HEADERS.has(key) && key !== lower) {
      throw fault(`request.headers must hold ${key}, not ${lower}`)
    }
    if (seen.has(key)) throw fault(`request.headers must hold ${key} once`)
    seen.add(key)
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

/**
 * Describes an HTTP request with filled-in placeholders. The field `secrets` lists the texts that the HTTP response
 * must not show.
 */
export type FilledRequest = {
  method: UseMethod
  url: string
  headers: Record<string, string>
  body: string | null
  secrets: string[]
}

/**
 * Returns the call of an MCP tool as a request with a JSON body, which holds the tool's arguments. Therefore the
 * service fills each placeholder into a JSON string, and ignores the Content-Type that the caller wrote.
 */
export const toolCall = (request: UseRequest): UseRequest => ({
  ...request,
  headers: {
    ...Object.fromEntries(
      Object.entries(request.headers).filter(([name]) => name.toLowerCase() !== 'content-type'),
    ),
    'content-type': 'application/json',
  },
})

/**
 * Replaces the placeholders of a request by the credential's values. The bounds (limits on use) of the credential must
 * allow the request, and the places of the secrets in the request.
 * @param nowMs is the time for the computation of a one-time code.
 * @throws {CredentialInputError} if a placeholder has no value, or if a value does not fit into its place.
 * @throws {OutOfBoundsError} if the bounds forbid the request, or the place of a secret in it.
 */
export function fillRequest(
  request: UseRequest,
  credential: UsedCredential & Bounds,
  nowMs: number,
): FilledRequest {
  const { method } = request
  const bounds = effectiveBounds(credential)
  const sent = new Set<string>()
  const fill = createFill(credential, { placement: bounds.placement, nowMs, sent })
  const [, scheme, authority, rest = '/'] = USE_URL.exec(request.url) ?? []
  const [path = '', ...query] = rest.split('?')
  const filledPath = fill(path, (at) => [`path:${path.slice(0, at)}`], encodeURIComponent)
  const pairs = query.length === 0 ? '' : `?${fillPairs('query', query.join('?'), fill)}`
  const url = `${scheme}://${authority}${filledPath}${pairs}`
  checkBounds(bounds, { method, url })
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [
      name,
      fill(value, () => headerPlaces(name, value), headerValue),
    ]),
  )
  const body = request.body === null ? null : fillBody(request.body, headers, fill)
  const secrets = [...new Set([...sent, ...unsentSecrets(credential, nowMs)])]
  if (secrets.length > SECRETS_MAX) {
    throw fault(`A credential with more than ${SECRETS_MAX} values cannot be used`)
  }
  return { method, url, headers, body, secrets }
}

const BASIC = /^Basic +\{\{\s*basicAuth\s*\}\}\s*$/i

function headerPlaces(name: string, value: string): string[] {
  const place = `header:${name.toLowerCase()}`
  return place === 'header:authorization' && BASIC.test(value) ? [place, 'basic'] : [place]
}

function headerValue(value: string, field: string): string {
  // The function refuses a header value with CR or LF, because such a value would begin another header.
  if (HEADER_VALUE.test(value) && value.length <= HEADER_VALUE_MAX_LENGTH) return value
  throw fault(
    `{{${field}}} does not fit into a header: its value has control or non-ASCII characters`,
  )
}
