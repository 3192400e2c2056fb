/** Tests which parts of an HTTP response a caller sees, and why the body may be left out. */
import { describe, expect, test } from 'bun:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import {
  ANSWER_BYTES_MAX,
  maskedAnswer,
  type ReceivedAnswer,
  withoutContent,
} from '../../../workers/vault/maskedAnswer.ts'

const SECRET = 'correct horse battery'
const answer = (changes: Partial<ReceivedAnswer> = {}, secrets = [SECRET]) =>
  maskedAnswer(
    {
      ...{ status: 200, statusText: 'OK', headers: [], body: Buffer.from('text') },
      truncated: false,
      ...changes,
    },
    secrets,
  )
const bodyOf = async (changes: Partial<ReceivedAnswer>) => {
  const { body, bodyOmitted } = await answer(changes)
  return bodyOmitted ?? { body }
}
const latin1 = (text: string) => Buffer.from(text).toString('latin1')

test('from a masked response without content, the caller gets only the status and the reason why the content is missing', () => {
  expect(withoutContent(503, 'too-slow')).toEqual({
    ...{ status: 503, statusText: '', headers: {}, body: null, bodyOmitted: 'too-slow' },
  })
})

test('a response that contains no secret is shown as it was received', async () => {
  const headers = ['Content-Type', 'text/plain', 'X-Empty', '']
  expect(await answer({ status: 404, statusText: 'Not Found', headers })).toEqual({
    status: 404,
    statusText: 'Not Found',
    headers: { 'content-type': 'text/plain', 'x-empty': '' },
    body: 'text',
    bodyOmitted: null,
  })
})

test('secrets are masked in the status text, in the names and values of headers, and in the body of a response', async () => {
  const shown = await answer({
    statusText: `No ${SECRET}`,
    headers: ['X-Echo', `is ${SECRET}`, 'X-correct%20horse%20battery', '1'],
    body: Buffer.from(`Your password: ${Buffer.from(SECRET).toString('base64')}.`),
  })
  expect(shown).toMatchObject({
    statusText: 'No [masked]',
    headers: { 'x-echo': 'is [masked]', 'x-[masked]': '1' },
    body: 'Your password: [masked].',
  })
})

test('if a response contains several secrets, each secret is masked', async () => {
  const { body } = await answer({ body: Buffer.from('one-secret, two-secret') }, [
    'one-secret',
    'two-secret',
  ])
  expect(body).toBe('[masked], [masked]')
})

test('if a response has too many layers of encoding, the caller gets neither its body, its headers nor its status text', async () => {
  const body = Buffer.from('%2525&amp;amp;\\\\u005c=3D3D+\\x25a\0'.repeat(700))
  const { bodyOmitted, headers, statusText } = await answer({ body, headers: ['A', '1'] })
  expect([bodyOmitted, headers, statusText]).toEqual(['too-many-layers', {}, ''])
})

describe('the service shows the headers of a response with masked secrets', () => {
  const headersOf = async (headers: string[]) => (await answer({ headers })).headers

  test('response headers with the same name are joined by commas, and cookie headers are joined by line breaks', async () => {
    const headers = ['Vary', 'a', 'Set-Cookie', 'x=1', 'vary', 'b', 'set-cookie', 'y=2', 'VARY', '']
    expect(await headersOf(headers)).toEqual({ vary: 'a, b, ', 'set-cookie': 'x=1\ny=2' })
  })

  test('response headers with the same name are first joined and then masked', async () => {
    expect(await headersOf(['A', 'correct horse', 'A', 'x'])).toEqual({ a: 'correct horse, x' })
    const joined = await answer({ headers: ['A', 'one', 'A', 'two'] }, ['one, two'])
    expect(joined.headers).toEqual({ a: '[masked]' })
  })

  test('the values of response headers are decoded as UTF-8', async () => {
    expect(await headersOf(['X-City', latin1('Zürich')])).toEqual({ 'x-city': 'Zürich' })
  })

  test('a masked response leaves out a header without a value, but contains a header with the name of a JavaScript property such as `constructor`', async () => {
    const headers = await headersOf(['__proto__', 'a', 'constructor', 'b', 'alone'])
    expect(Object.entries(headers)).toEqual([
      ['__proto__', 'a'],
      ['constructor', 'b'],
    ])
  })
})

describe('the service shows the body of a response as text, or states why not', () => {
  test('a truncated response body is reported as too large, even if the response is also partial (status 206)', async () => {
    expect(await bodyOf({ truncated: true, status: 206 })).toBe('too-large')
  })

  test('a response body counts as partial if the status is 206, or if the response has a Content-Range header', async () => {
    expect(await bodyOf({ status: 206 })).toBe('partial')
    expect(await bodyOf({ headers: ['CONTENT-RANGE', 'bytes 0-3/9'] })).toBe('partial')
    expect(await bodyOf({ headers: ['Content-Range', ''] })).toEqual({ body: 'text' })
    expect(await bodyOf({ status: 205 })).toEqual({ body: 'text' })
    // The text Content-Range in the value of another header must not count as a Content-Range header.
    expect(await bodyOf({ headers: ['Vary', 'content-range', 'A', 'b'] })).toEqual({ body: 'text' })
  })

  test('a response body that is not valid UTF-8 is shown only if the response states a Latin charset', async () => {
    const body = Buffer.from('Zürich', 'latin1')
    const of = (type: string) => bodyOf({ body, headers: ['Content-Type', type] })
    expect(await bodyOf({ body })).toBe('not-text')
    for (const type of ['text/plain', 'text/plain; charset=utf-8', 'x; charset=iso-8859-15']) {
      expect([type, await of(type)]).toEqual([type, 'not-text'])
    }
    for (const charset of ['iso-8859-1', '"ISO-8859-1"', 'latin1', 'windows-1252', 'us-ascii']) {
      const shown = await of(`text/plain; charset=${charset}`)
      expect([charset, shown]).toEqual([charset, { body: 'Zürich' }])
    }
  })

  test('a response body in valid UTF-8 is shown as UTF-8, even if the response states another charset', async () => {
    const headers = ['Content-Type', 'text/plain; charset=iso-8859-1']
    expect(await bodyOf({ body: Buffer.from('Zürich'), headers })).toEqual({ body: 'Zürich' })
  })

  test('an empty response body is shown as an empty text', async () => {
    expect(await bodyOf({ body: Buffer.alloc(0) })).toEqual({ body: '' })
  })
})

describe('a compressed response body is decompressed before its secrets are masked', () => {
  const coded = (coding: string, body: Uint8Array) =>
    bodyOf({ body, headers: ['Content-Encoding', coding] })
  const text = Buffer.from(`password ${SECRET}`)
  const masked = { body: 'password [masked]' }

  test.each([
    ['gzip', gzipSync(text)],
    ['X-GZIP', gzipSync(text)],
    ['br', brotliCompressSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
    [' , identity, gzip ,', gzipSync(text)],
    ['identity', text],
    ['gzip, deflate, br', brotliCompressSync(deflateSync(gzipSync(text)))],
  ])('a response body with the coding "%s" is decompressed and masked', async (coding, body) => {
    expect(await coded(coding, body)).toEqual(masked)
  })

  test('the compression codings of a response body are taken from all Content-Encoding headers, in the order of the headers', async () => {
    const headers = ['Content-Encoding', 'gzip', 'content-encoding', 'br']
    const body = brotliCompressSync(gzipSync(text))
    expect(await bodyOf({ headers, body })).toEqual(masked)
  })

  test('the coding of a response body is reported as unknown if there are four codings, an unsupported coding or a broken body', async () => {
    const four = gzipSync(gzipSync(gzipSync(gzipSync(text))))
    expect(await coded('gzip, gzip, gzip, gzip', four)).toBe('unknown-encoding')
    for (const coding of ['zstd', 'constructor', '__proto__', 'gzip;q=1', 'x-x-gzip']) {
      expect([coding, await coded(coding, gzipSync(text))]).toEqual([coding, 'unknown-encoding'])
    }
    for (const coding of ['gzip', 'br', 'deflate']) {
      expect([coding, await coded(coding, text)]).toEqual([coding, 'unknown-encoding'])
    }
    expect(await coded('gzip', gzipSync(text).subarray(0, -9))).toBe('unknown-encoding')
  })

  test('a compressed response body of zero bytes is shown as an empty text, for every coding', async () => {
    expect(await coded('gzip', Buffer.alloc(0))).toEqual({ body: '' })
    expect(await coded('zstd', Buffer.alloc(0))).toEqual({ body: '' })
  })

  test.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
    ['deflate', deflateRawSync],
    ['deflate', deflateSync],
  ] as const)(
    'a compressed response body with the coding %s counts as too large if it is one byte larger than the limit',
    async (coding, pack) => {
      const filled = (length: number) => pack(Buffer.alloc(length, '.'))
      expect(await coded(coding, filled(ANSWER_BYTES_MAX + 1))).toBe('too-large')
      const { body } = (await coded(coding, filled(ANSWER_BYTES_MAX))) as { body: string }
      expect(body).toHaveLength(ANSWER_BYTES_MAX)
    },
  )
})
