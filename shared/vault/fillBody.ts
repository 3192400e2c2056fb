/**
 * Fills the placeholders of a request body. The code parses the body by its content type, because the server will parse
 * it in the same way. If different servers could read a body in different ways, the body counts as text. A text body
 * may contain only placeholders that the credential allows in the place `body`.
 */
import { CredentialInputError } from './credential.ts'
import { type Fill, PLACEHOLDER } from './placeholders.ts'
import { placeName } from './placement.ts'

/** Sets the maximum depth of a JSON body with placeholders. The code refuses a more deeply nested JSON body. */
const DEPTH_MAX = 64

const fault = (message: string) => new CredentialInputError(message)

const hasPlaceholder = (text: string) => text.search(PLACEHOLDER) !== -1

/**
 * Fills the placeholders of a request body. @param headers are the headers of the request with filled-in values.
 * @throws {CredentialInputError} if a placeholder has no value. @throws {OutOfBoundsError} if the credential does not
 * allow a secret at the place of its placeholder.
 */
export function fillBody(body: string, headers: Record<string, string>, fill: Fill): string {
  const { essence, isClear } = contentType(headers)
  if (isClear && isForm(essence)) return fillPairs('form', body, fill)
  if (isClear && isJson(essence)) return fillJson(body, fill)
  return fill(body, () => ['body'], escapeFor(essence))
}

const isForm = (essence: string) => essence === 'application/x-www-form-urlencoded'
const isJson = (essence: string) => /^[\w.+-]+\/(?:[\w.+-]+[+-])?json(?:-[\d.]+)?$/.test(essence)

/**
 * Reads the content type of a request. The field `isClear` tells whether all servers read a body with the given headers
 * in the same way.
 */
function contentType(headers: Record<string, string>): { essence: string; isClear: boolean } {
  const given = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
  const type = (given.get('content-type') ?? '').toLowerCase()
  const [essence = '', ...parameters] = type.split(';').map((part) => part.trim())
  const isUtf8 = parameters.every(
    (one) => !one.startsWith('charset') || /^charset="?utf-?8"?$/.test(one),
  )
  const isPlain = /^(?:|identity)$/i.test(given.get('content-encoding')?.trim() ?? '')
  return { essence, isClear: isUtf8 && isPlain && !type.includes(',') }
}

/**
 * Returns a function that escapes a credential's value for a body of the given content type. An escaped value cannot
 * end the string that surrounds its placeholder.
 */
function escapeFor(essence: string): (value: string) => string {
  if (isForm(essence)) return encodeURIComponent
  if (essence.endsWith('json')) return (value) => JSON.stringify(value).slice(1, -1)
  if (essence.endsWith('xml') || essence === 'text/html') {
    return (value) => value.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
  }
  return (value) => value
}

/** Fills the placeholders in the values of a URL query or a form body. */
export function fillPairs(kind: 'query' | 'form', text: string, fill: Fill): string {
  return text
    .split('&')
    .map((pair) => {
      const [name = '', ...rest] = pair.split('=')
      const filledName = fill(name, () => [`a name of the ${kind}`], encodeURIComponent)
      if (rest.length === 0) return filledName
      const value = rest.join('=')
      // A query value with a semicolon must not contain a secret, because some servers read a semicolon as the
      // separator of two query parameters.
      const place = value.includes(';') ? `a ${kind} with a semicolon` : pairPlace(kind, name)
      return `${filledName}=${fill(value, () => [place], encodeURIComponent)}`
    })
    .join('&')
}

function pairPlace(kind: 'query' | 'form', name: string): string {
  try {
    return `${kind}:${placeName(decodeURIComponent(name.replaceAll('+', ' ')))}`
  } catch {
    return `a name of the ${kind} that does not decode`
  }
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g

/**
 * Describes an open object or array of a JSON text. The field `key` is the name of the object's current member, or the
 * current index in the array.
 */
type Open = { keys: Set<string> | null; key: string | number; isKeyNext: boolean }

/**
 * Fills the placeholders in the strings of a JSON text. All bytes outside the placeholders stay the same, so that large
 * numbers keep their digits.
 */
function fillJson(text: string, fill: Fill): string {
  // The function also parses a JSON text that has a backslash but no `{{`, because an escape sequence can stand for a
  // brace of a placeholder.
  if (!/\{\{|\\/.test(text)) return text
  if (!isValidJson(text)) {
    if (hasPlaceholder(text)) throw fault('request.body must be JSON, as its content-type says')
    return text
  }
  const open: Open[] = []
  let isDoubtful = false
  let isFilled = false
  const string = (token: string): string => {
    const value = token.includes('{') || token.includes('\\') ? JSON.parse(token) : null
    const top = open.at(-1)
    if (top?.isKeyNext) {
      const key: string = value ?? token.slice(1, -1)
      if (hasPlaceholder(key)) throw fault('request.body must hold no placeholder in a JSON key')
      if (top.keys!.has(key)) isDoubtful = true
      top.keys!.add(key)
      Object.assign(top, { key, isKeyNext: false })
      return token
    }
    if (value === null || !hasPlaceholder(value)) return token
    isFilled = true
    return JSON.stringify(
      fill(
        value,
        () => [`json:${pointer(open)}`],
        (one) => one,
      ),
    )
  }
  const filled = text.replace(TOKEN, (token) => {
    const top = open.at(-1)
    if (token.startsWith('"')) return string(token)
    if (token === '{') open.push({ keys: new Set(), key: '', isKeyNext: true })
    else if (token === '[') open.push({ keys: null, key: 0, isKeyNext: false })
    else if (token !== ',') open.pop()
    else if (top!.keys === null) top!.key = Number(top!.key) + 1
    else top!.isKeyNext = true
    return token
  })
  if (isFilled && isDoubtful) {
    throw fault('request.body must hold each JSON key once in an object')
  }
  return filled
}

function isValidJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Returns the JSON Pointer (RFC 6901) of the member that is being read. */
function pointer(open: readonly Open[]): string {
  if (open.length > DEPTH_MAX) {
    throw fault(`request.body must nest at most ${DEPTH_MAX} levels where it has placeholders`)
  }
  const steps = open.map(({ key }) => `/${String(key).replace(/~/g, '~0').replaceAll('/', '~1')}`)
  return placeName(steps.join(''))
}
