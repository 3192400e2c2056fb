import { ApiError, badRequest } from './errors.ts'

/** The largest JSON body, in bytes (docs/contract.md §2). */
export const BODY_MAX_BYTES = 2 * 1024 * 1024

/** The largest JSON body of mail with attachments, in bytes (docs/contract.md §2). */
export const MAIL_BODY_MAX_BYTES = 35 * 1024 * 1024

/** The bounds of a body. */
export type BodyLimit = {
  maxBytes: number
  /** Only a body with this field may be larger than {@link BODY_MAX_BYTES}. */
  largeFor?: string
  /** Called with the number of bytes held. It throws when all bodies together are too large. */
  hold?: (bytes: number) => void
}

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i

/**
 * Reads a request's body: its JSON value and its text. No body is undefined.
 * @throws {ApiError} 413 past its limit, 415 for another media type, 400 for invalid JSON.
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
  try {
    return { value: JSON.parse(text), text }
  } catch {
    throw badRequest('The body must be valid JSON')
  }
}

/**
 * Reads a request's JSON body. No body is undefined, also with a Content-Type: clients send one on every
 * request.
 * @throws {ApiError} 413 past its limit, 415 for another media type, 400 for invalid JSON or U+0000.
 */
export async function readJson(request: Request, limit: BodyLimit): Promise<unknown> {
  const read = await readJsonValue(request, limit)
  if (read === undefined) return undefined
  const { value, text } = read
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw notAnObject()
  // Only an escaped character can be one of these. Walking every body would cost more than parsing it.
  if (/\\u(?:0000|d[89a-f])|\0/i.test(text)) refuseUnstorable(value, '')
  return value
}

/** 400 for an absent body, or one that is no JSON object. */
export const notAnObject = () => badRequest('The body must be a JSON object')

async function readBytes(request: Request, { maxBytes, hold }: BodyLimit): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array()
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge(maxBytes)
    hold?.(chunk.length)
    chunks.push(chunk)
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

const tooLarge = (maxBytes: number) =>
  new ApiError(413, 'payload_too_large', `The body must be at most ${maxBytes} bytes`)

/** Inputs of this API nest far less. The walk below must not exhaust the stack. */
const DEPTH_MAX = 100

/**
 * Refuses strings with U+0000 or half a surrogate pair: PostgreSQL cannot store them.
 * @param path the name of `value` in the message; empty for a whole body.
 * @throws {ApiError} 400
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
