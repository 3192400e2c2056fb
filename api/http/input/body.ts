import { ApiError, badRequest, InvalidJsonError } from '../errors.ts'

/** Sets the maximum number of bytes of a JSON request body (docs/contract.md §2). */
export const BODY_MAX_BYTES = 2 * 1024 * 1024

/** Sets the maximum number of bytes of a JSON request body that holds a mail with attachments (docs/contract.md §2). */
export const MAIL_BODY_MAX_BYTES = 35 * 1024 * 1024

/** Describes the limits on the body of one HTTP request. */
export type BodyLimit = {
  maxBytes: number
  /**
   * Names a field of the request body. Only a request body with the named field may be larger than {@link
   * BODY_MAX_BYTES}.
   */
  largeFor?: string
  /**
   * Counts the bytes of each chunk of the request body when the chunk arrives. The function throws an error if the
   * request bodies in memory exceed their limit. The process calls `end` to drop this body if it needs the memory for
   * another one.
   * @returns the milliseconds to wait before reading the next chunk of the request body.
   */
  hold?: (bytes: number, end: (error: ApiError) => void) => number
  /** Limits the time in which the body of a mail that is delivered over HTTP must arrive. */
  patience?: BodyPatience
}

/**
 * Sets the lowest speed at which a request body may arrive. The service refuses a slower body, because it would occupy
 * memory and a connection for a long time.
 */
type BodyPatience = {
  /** Sets for how many milliseconds a request body may arrive before the service checks its speed. */
  graceMs: number
  bytesPerS: number
  /** Limits the milliseconds in which the whole body of an HTTP request must arrive. */
  totalMs: number
}
const PATIENCE: BodyPatience = { graceMs: 10_000, bytesPerS: 8 * 1024, totalMs: 120_000 }

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i

/**
 * Reads the body of an HTTP request, and returns its JSON value and its text. Returns `undefined` if the request has no
 * body.
 * @throws {ApiError} 413 for a body that exceeds its limit, 415 for a media type other than JSON, 400 for invalid JSON.
 */
export async function readJsonValue(
  request: Request,
  limit: BodyLimit,
): Promise<{ value: unknown; text: string } | undefined> {
  const { maxBytes, largeFor } = limit
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  const bytes = await readBytes(request, limit)
  if (bytes.length === 0) return undefined
  if (!JSON_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new ApiError(
      415,
      'unsupported_media_type',
      'The body must be JSON, with Content-Type: application/json',
    )
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw badRequest('The body must be UTF-8')
  }
  if (bytes.length > BODY_MAX_BYTES && largeFor !== undefined && !text.includes(`"${largeFor}"`)) {
    throw tooLarge(BODY_MAX_BYTES)
  }
  if (!hasFewValues(text)) {
    throw badRequest(`The body must have at most ${VALUES_MAX} values`)
  }
  try {
    return { value: JSON.parse(text), text }
  } catch {
    throw new InvalidJsonError()
  }
}

/**
 * Limits the number of JSON values in one request body. The schema cannot limit this number, because the service must
 * parse a body before it can check the schema. Without this limit, a body of 2 MB could make the parser create a
 * million values.
 */
const VALUES_MAX = 20_000
const [QUOTE, BACKSLASH, COMMA, COLON, BRACKET, BRACE] = [34, 92, 44, 58, 91, 123]

/**
 * Counts the values of a JSON text without parsing it. A fast search finds the end of each JSON string, so the function
 * does not look at each character.
 */
function hasFewValues(text: string): boolean {
  // Every JSON value except the first follows a comma, a colon, `[` or `{`. The loop counts these characters.
  if (text.length <= VALUES_MAX) return true
  let values = 1
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === COMMA || code === COLON || code === BRACKET || code === BRACE) {
      if (++values > VALUES_MAX) return false
    } else if (code === QUOTE) {
      at = endOfString(text, at)
      if (at === -1) return true
    }
  }
  return true
}

/**
 * Returns the position of the quote that ends a JSON string. Returns -1 if there is no such quote, in which case
 * JSON.parse later refuses the text.
 */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1)
  while (end !== -1) {
    let escapes = 0
    while (text.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++
    if (escapes % 2 === 0) return end
    end = text.indexOf('"', end + 1)
  }
  return -1
}

/**
 * Reads the JSON body of an HTTP request. Returns `undefined` for a request without a body, even if it has a
 * Content-Type, because some clients send this header on every request.
 * @throws {ApiError} 413 for a body that exceeds its limit, 415 for another media type, 400 for invalid JSON or U+0000.
 */
export async function readJson(request: Request, limit: BodyLimit): Promise<unknown> {
  const read = await readJsonValue(request, limit)
  if (read === undefined) return undefined
  const { value, text } = read
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notAnObject()
  // Only a request body with a NUL, or with the escape of a NUL or a surrogate, can hold a character that PostgreSQL
  // cannot store. The service does not examine the values of all other bodies, because this would cost more than the
  // parsing.
  if (/\\u(?:0000|d[89a-f])|\0/i.test(text)) refuseUnstorable(value, '')
  return value
}

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i

/**
 * Reads the fields of an HTML form. If a form field name occurs twice, the last value counts. @throws {ApiError} 413
 * for a body that exceeds its limit, 415 for another media type, 400 for invalid data
 */
export async function readForm(request: Request, limit: BodyLimit): Promise<unknown> {
  return Object.fromEntries(await readFormPairs(request, limit))
}

/**
 * Reads the fields of an HTML form as pairs of name and value, in the order of the form. @throws {ApiError} the same
 * errors as {@link readForm}
 */
export async function readFormPairs(
  request: Request,
  limit: BodyLimit,
): Promise<[name: string, value: string][]> {
  const bytes = await readBytes(request, limit)
  if (!FORM_TYPE.test(request.headers.get('content-type') ?? '')) {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be an HTML form')
  }
  const pairs = [...new URLSearchParams(new TextDecoder().decode(bytes))]
  for (const [name, value] of pairs) refuseUnstorable({ [name]: value }, '')
  return pairs
}

/** Makes the 400 error for a request whose body is absent or is not a JSON object. */
export const notAnObject = () => badRequest('The body must be a JSON object')

async function readBytes(
  request: Request,
  { maxBytes, hold, patience = PATIENCE }: BodyLimit,
): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const reader = request.body.getReader() as ReadableStreamDefaultReader<Uint8Array>
  const chunks: Uint8Array[] = []
  const startedMs = performance.now()
  let size = 0
  let ended: ApiError | null = null
  const end = (error: ApiError) => {
    ended = error
    reader.cancel().catch(() => {})
  }
  const timer = setInterval(
    () => {
      const ms = performance.now() - startedMs
      const least = ((ms - patience.graceMs) / 1000) * patience.bytesPerS
      if (ms >= patience.totalMs || size < least) end(tooSlow())
    },
    Math.min(1_000, patience.graceMs),
  )
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (ended !== null) throw ended
      if (done) break
      size += value.length
      if (size > maxBytes) throw tooLarge(maxBytes)
      const waitMs = hold?.(value.length, end) ?? 0
      chunks.push(value)
      if (waitMs > 0) await Bun.sleep(waitMs)
    }
  } finally {
    clearInterval(timer)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

const tooSlow = () =>
  new ApiError(408, 'request_timeout', 'The body arrives too slowly', { connection: 'close' })

const tooLarge = (maxBytes: number) =>
  new ApiError(413, 'payload_too_large', `The body must be at most ${maxBytes} bytes`)

/**
 * Limits how deeply the JSON values of a body may nest. Valid inputs of this API have far fewer levels. Without this
 * limit, a recursive function could exhaust the stack.
 */
const DEPTH_MAX = 100

/**
 * Refuses strings with U+0000 or half a surrogate pair, because PostgreSQL cannot store them.
 * @param path is the name that the error message gives to `value`. An empty path stands for the whole body.
 * @throws {ApiError} 400 for a string that PostgreSQL cannot store.
 */
export function refuseUnstorable(value: unknown, path: string, depth = 0): void {
  if (depth > DEPTH_MAX) throw badRequest(`The body must not nest deeper than ${DEPTH_MAX} levels`)
  if (typeof value === 'string') checkString(value, path === '' ? 'The body' : path)
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value)) {
    const name = Array.isArray(value) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    checkString(key, 'A field name')
    refuseUnstorable(item, name, depth + 1)
  }
}

function checkString(text: string, name: string): void {
  if (text.includes('\0')) throw badRequest(`${name} must not contain a null character`)
  if (!text.isWellFormed()) throw badRequest(`${name} must be well-formed Unicode`)
}
