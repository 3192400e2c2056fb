import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib'
import { errorCode } from '../../shared/errorCode.ts'
import { Masker, TooManyLayersError } from '../../shared/vault/maskSecrets.ts'
import type { UseAnswer } from '../../shared/vault/useAnswer.ts'

/** Limits the bytes in the body of an HTTP response, both as received and after decompression. */
export const ANSWER_BYTES_MAX = 1024 * 1024
/** Limits how many times one response body may be compressed. */
const CODINGS_MAX = 3

/** Describes an HTTP response in which secrets are not masked yet. */
export type ReceivedAnswer = {
  status: number
  statusText: string
  /**
   * Lists the headers of the HTTP response, alternating between header names and header values. Each character of the
   * header names and values represents one byte.
   */
  headers: string[]
  body: Uint8Array
  truncated: boolean
}

/** Returns a masked HTTP response that contains only a status. */
export const withoutContent = (
  status: number,
  bodyOmitted: UseAnswer['bodyOmitted'],
): UseAnswer => ({ status, statusText: '', headers: {}, body: null, bodyOmitted })

/**
 * Returns the masked response for the caller that used the secret in its request. The masking covers every form of the
 * secrets. The response leaves out a body that the service cannot read.
 */
export async function maskedAnswer(
  answer: ReceivedAnswer,
  secrets: readonly string[],
): Promise<UseAnswer> {
  const masker = new Masker(secrets)
  const masked = (text: string) => masker.bytes(Buffer.from(text, 'latin1')).toString('utf8')
  try {
    return {
      status: answer.status,
      statusText: masked(answer.statusText),
      headers: shownHeaders(answer.headers, masked),
      ...(await maskedBody(answer, masker)),
    }
  } catch (error) {
    if (!(error instanceof TooManyLayersError)) throw error
    return withoutContent(answer.status, 'too-many-layers')
  }
}

/**
 * Returns the headers of a response by their names in lower case. Headers with the same name form one value (RFC 9110
 * §5.3), so their values are joined first. The joined value of Set-Cookie holds one cookie in each line.
 * @param shown returns a header name or value in the masked form that the caller may see.
 */
export function shownHeaders(
  raw: readonly string[],
  shown: (text: string) => string,
): Record<string, string> {
  const headers = new Map<string, string>()
  for (let n = 0; n + 1 < raw.length; n += 2) {
    const name = shown(raw[n]!).toLowerCase()
    const before = headers.get(name)
    const joint = name === 'set-cookie' ? '\n' : ', '
    headers.set(name, before === undefined ? raw[n + 1]! : `${before}${joint}${raw[n + 1]}`)
  }
  return Object.fromEntries([...headers].map(([name, value]) => [name, shown(value)]))
}

/** Returns the joined values of one header of a response. */
export const headerValue = ({ headers }: ReceivedAnswer, wanted: string): string =>
  headers
    .flatMap((name, n) => (n % 2 === 0 && name.toLowerCase() === wanted ? [headers[n + 1]!] : []))
    .join(',')

type Body = Pick<UseAnswer, 'body' | 'bodyOmitted'>
const omitted = (bodyOmitted: UseAnswer['bodyOmitted']): Body => ({ body: null, bodyOmitted })

async function maskedBody(answer: ReceivedAnswer, masker: Masker): Promise<Body> {
  // The service leaves out a truncated response body, because it could end within a secret, and the masking finds only
  // whole secrets.
  if (answer.truncated) return omitted('too-large')
  // The service leaves out the body of a partial response, because it can contain a part of a secret (RFC 9110
  // §15.3.7).
  if (answer.status === 206 || headerValue(answer, 'content-range') !== '')
    return omitted('partial')
  const plain = await decompressed(answer.body, headerValue(answer, 'content-encoding'))
  if (typeof plain === 'string') return omitted(plain)
  const text = textOf(plain, headerValue(answer, 'content-type'))
  if (text === null) return omitted('not-text')
  return { body: masker.text(text), bodyOmitted: null }
}

const isTooLarge = (error: unknown): boolean => errorCode(error) === 'ERR_BUFFER_TOO_LARGE'

const LIMIT = { maxOutputLength: ANSWER_BYTES_MAX }
const unzip: Record<string, (bytes: Uint8Array) => Promise<Buffer>> = {
  gzip: (bytes) => promisify(gunzip)(bytes, LIMIT),
  br: (bytes) => promisify(brotliDecompress)(bytes, LIMIT),
  // Some servers send the raw deflate format under the name `deflate` (RFC 9110 §8.4.1.2), so the code tries both
  // formats.
  deflate: (bytes) =>
    promisify(inflate)(bytes, LIMIT).catch((error) => {
      if (isTooLarge(error)) throw error
      return promisify(inflateRaw)(bytes, LIMIT)
    }),
}

/** Returns the decompressed body of a response, or the reason why the body cannot be decompressed. */
export async function decompressed(
  body: Uint8Array,
  codings: string,
): Promise<Uint8Array | 'too-large' | 'unknown-encoding'> {
  const names = codings
    .split(',')
    .map((name) => name.trim().toLowerCase().replace(/^x-/, ''))
    .filter((name) => name !== '' && name !== 'identity')
  if (names.length > CODINGS_MAX) return 'unknown-encoding'
  let bytes: Uint8Array = body
  for (const name of names.reverse()) {
    if (bytes.length === 0) return bytes
    const decode = Object.hasOwn(unzip, name) ? unzip[name] : undefined
    if (decode === undefined) return 'unknown-encoding'
    try {
      bytes = await decode(bytes)
    } catch (error) {
      return isTooLarge(error) ? 'too-large' : 'unknown-encoding'
    }
  }
  return bytes
}

const LATIN_1 = /charset="?(?:iso-8859-1|latin1|windows-1252|us-ascii)\b/i

/**
 * Returns the text of a response body. Returns `null` if the body is binary, because a binary body could contain the
 * secret in a form that the masking does not recognise.
 */
export function textOf(bytes: Uint8Array, contentType: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return LATIN_1.test(contentType) ? new TextDecoder('windows-1252').decode(bytes) : null
  }
}
