/**
 * Tests how the service reads the bodies of HTTP requests: their limits, their media types, and the strings that they
 * may hold.
 */
import { describe, expect, test } from 'bun:test'
import { ApiError } from '../../../../api/http/errors.ts'
import {
  BODY_MAX_BYTES,
  type BodyLimit,
  MAIL_BODY_MAX_BYTES,
  readForm,
  readJson,
  readJsonValue,
  refuseUnstorable,
} from '../../../../api/http/input/body.ts'

const LIMIT: BodyLimit = { maxBytes: BODY_MAX_BYTES }
const NUL_ESCAPE = '\\u0000'

type Given = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null
type Sent = { type?: string | null; length?: string }

function requestOf(body: Given, { type = 'application/json', length }: Sent = {}): Request {
  const request = new Request('https://api.example/', { method: 'POST', body })
  request.headers.delete('content-type')
  if (type !== null) request.headers.set('content-type', type)
  if (length !== undefined) request.headers.set('content-length', length)
  return request
}

/** Returns the status, code and message of the error with which the service refuses a body. */
async function faultOf(work: () => unknown): Promise<[number, string, string]> {
  try {
    await work()
  } catch (error) {
    if (error instanceof ApiError) return [error.status, error.code, error.message]
    throw error
  }
  throw new Error('the body was read')
}
const jsonFault = (body: Given, sent: Sent = {}, limit = LIMIT) =>
  faultOf(() => readJson(requestOf(body, sent), limit))
const bad = (message: string): [number, string, string] => [400, 'bad_request', message]
const tooLarge = (bytes: number): [number, string, string] => [
  413,
  'payload_too_large',
  `The body must be at most ${bytes} bytes`,
]

/** Creates a request body that arrives in the given chunks, one chunk at each read. */
function chunksOf(...chunks: string[]): ReadableStream<Uint8Array> {
  const left = [...chunks]
  return new ReadableStream({
    pull(controller) {
      const next = left.shift()
      if (next === undefined) controller.close()
      else controller.enqueue(Buffer.from(next))
    },
  })
}

describe('the service reads a JSON body in a request, and refuses a body that is not valid', () => {
  test('the code that reads a JSON body returns both the parsed value and the original text', async () => {
    const text = '{"a":[1,"ä"], "b":null}'
    expect(await readJsonValue(requestOf(text), LIMIT)).toEqual({
      value: { a: [1, 'ä'], b: null },
      text,
    })
    expect(await readJson(requestOf(chunksOf('{"a"', ':1', '}')), LIMIT)).toEqual({ a: 1 })
  })

  test('for every media type, an empty body counts as a missing body', async () => {
    for (const body of [() => null, () => '', () => chunksOf()]) {
      for (const type of ['application/json', 'text/plain', null]) {
        expect(await readJson(requestOf(body(), { type }), LIMIT)).toBeUndefined()
        expect(await readJsonValue(requestOf(body(), { type }), LIMIT)).toBeUndefined()
      }
    }
  })

  test('a JSON body must have the media type application/json or a type with the suffix +json', async () => {
    for (const type of [
      ...['application/json', 'APPLICATION/JSON', 'application/json; charset=utf-8'],
      ...[
        'application/json ;charset=utf-8',
        'application/ld+json',
        'application/vnd.a-b.c+json;v=1',
      ],
    ]) {
      expect([type, await readJson(requestOf('{}', { type }), LIMIT)]).toEqual([type, {}])
    }
    for (const type of [
      ...['text/json', 'application/jsonp', 'application/json5', 'xapplication/json', '+json'],
      ...['application/+json', 'text/plain', 'application/json charset=utf-8', null],
    ]) {
      expect([type, ...(await jsonFault('{}', { type }))]).toEqual([
        type,
        ...([415, 'unsupported_media_type'] as const),
        'The body must be JSON, with Content-Type: application/json',
      ])
    }
  })

  test('a JSON body must be encoded in UTF-8', async () => {
    expect(await jsonFault(Uint8Array.of(0x22, 0xe4, 0x22))).toEqual(bad('The body must be UTF-8'))
    expect(await jsonFault(Uint8Array.of(0x7b, 0xff, 0x7d))).toEqual(bad('The body must be UTF-8'))
  })

  test('a JSON body must be valid JSON', async () => {
    for (const text of ['{', '{"a":1,}', "{'a':1}", 'undefined', '{"a":"', ' ']) {
      expect([text, await jsonFault(text)]).toEqual([text, bad('The body must be valid JSON')])
    }
  })

  test('a JSON body must be an object, unless the operation accepts any JSON value', async () => {
    for (const text of ['[]', '[{}]', 'null', '1', '"{}"', 'true']) {
      expect([text, await jsonFault(text)]).toEqual([text, bad('The body must be a JSON object')])
      expect((await readJsonValue(requestOf(text), LIMIT))?.text).toBe(text)
    }
  })
})

describe('a request body with more bytes than the limit is refused', () => {
  test('the limit on the bytes of a body is 2 MB for JSON and 35 MB for mail', () => {
    expect([BODY_MAX_BYTES, MAIL_BODY_MAX_BYTES]).toEqual([2_097_152, 36_700_160])
  })

  test('the limit on the size of a body counts the bytes of all chunks', async () => {
    const limit = { maxBytes: 10 }
    expect(await readJson(requestOf('{"a":"12"}'), limit)).toEqual({ a: '12' })
    expect(await readJson(requestOf(chunksOf('{"a":', '"12"}')), limit)).toEqual({ a: '12' })
    expect(await jsonFault('{"a":"123"}', {}, limit)).toEqual(tooLarge(10))
    expect(await jsonFault(chunksOf('{"a":', '"123"}'), {}, limit)).toEqual(tooLarge(10))
    expect(await jsonFault('{"a":"ää"}', {}, limit)).toEqual(tooLarge(10))
  })

  test('the limit on the size of a body applies to Content-Length before a byte of JSON is read', async () => {
    let reads = 0
    const body = () =>
      new ReadableStream<Uint8Array>(
        {
          pull(controller) {
            reads++
            controller.enqueue(Buffer.from('{}'))
            controller.close()
          },
        },
        { highWaterMark: 0 },
      )
    expect(await jsonFault(body(), { length: '11' }, { maxBytes: 10 })).toEqual(tooLarge(10))
    expect(reads).toBe(0)
    expect(await readJson(requestOf(body(), { length: '10' }), { maxBytes: 10 })).toEqual({})
  })

  test('a mail request may be larger than 2 MB only if its body contains the field attachments', async () => {
    const limit = { maxBytes: MAIL_BODY_MAX_BYTES, largeFor: 'attachments' }
    const sized = (bytes: number, name: string) =>
      `{"${name}":"${'x'.repeat(bytes - name.length - 7)}"}`
    expect(sized(BODY_MAX_BYTES, 'text').length).toBe(BODY_MAX_BYTES)
    for (const [bytes, name] of [
      [BODY_MAX_BYTES, 'text'],
      [BODY_MAX_BYTES + 1, 'attachments'],
    ] as const) {
      expect(await readJson(requestOf(sized(bytes, name)), limit)).toContainKey(name)
    }
    for (const name of ['text', 'attachment', 'attachments2']) {
      const body = sized(BODY_MAX_BYTES + 1, name)
      expect([name, await jsonFault(body, {}, limit)]).toEqual([name, tooLarge(BODY_MAX_BYTES)])
      expect(await readJson(requestOf(body), { maxBytes: limit.maxBytes })).toContainKey(name)
    }
  })
})

describe('a request body with too many JSON values is refused', () => {
  const fault = bad('The body must have at most 20000 values')
  const list = (length: number, item = '1') => `[${Array(length).fill(item).join(',')}]`

  test('a JSON body may have at most 20,000 values; lists, objects and their items each count as one value', async () => {
    for (const [most, item] of [
      [19_999, '1'],
      [9_999, '[1]'],
      [6_666, '{"a":1}'],
    ] as const) {
      const read = await readJsonValue(requestOf(list(most, item)), LIMIT)
      expect(read?.value).toHaveLength(most)
      expect(await jsonFault(list(most + 1, item))).toEqual(fault)
    }
  })

  test('the limit on the values of a body does not count commas and brackets inside of a string', async () => {
    for (const text of [
      `{"a":"${',:[{'.repeat(10_000)}"}`,
      `{"a":"\\"${',:[{'.repeat(10_000)}"}`,
      `{"a":"x\\\\\\"${',:[{'.repeat(10_000)}"}`,
      `{"${','.repeat(40_000)}":1}`,
    ]) {
      expect(await readJson(requestOf(text), LIMIT)).toBeObject()
    }
  })

  test('the limit on the JSON values of a body also counts the values that follow a string with backslashes at its end', async () => {
    for (const string of ['""', '"\\\\"', '"\\\\\\\\"', '"\\""', '"a"']) {
      const body = `[${string},${list(20_000)}]`
      expect([string, await jsonFault(body)]).toEqual([string, fault])
    }
  })

  test('the limit on a body’s values ignores commas in an unfinished string, because the body is not valid JSON anyway', async () => {
    const body = `[${list(19_000)},"${','.repeat(5_000)}`
    expect(await jsonFault(body)).toEqual(bad('The body must be valid JSON'))
    expect(await jsonFault(`${body}\\"`)).toEqual(bad('The body must be valid JSON'))
  })
})

describe('a request body is refused if the database cannot store one of its strings', () => {
  test('a string of a body must not hold the null character, as a byte or as an escape', async () => {
    expect(await jsonFault(`{"a":{"b":["x","${NUL_ESCAPE}"]}}`)).toEqual(
      bad('a.b[1] must not contain a null character'),
    )
    expect(await jsonFault(`{"a${NUL_ESCAPE}":1}`)).toEqual(
      bad('A field name must not contain a null character'),
    )
    expect(await jsonFault('{"a":"\0"}')).toEqual(bad('The body must be valid JSON'))
  })

  test('a string of a body must not hold an unpaired UTF-16 surrogate', async () => {
    for (const half of ['\\ud800', '\\uDBFF', '\\udc00', '\\uDFFF', '\\ude00\\ud83d', '\\ud83dx']) {
      expect([half, await jsonFault(`{"a":"${half}"}`)]).toEqual([
        half,
        bad('a must be well-formed Unicode'),
      ])
      expect(await jsonFault(`{"b":{"${half}":1}}`)).toEqual(
        bad('A field name must be well-formed Unicode'),
      )
    }
  })

  test('a string of a body may contain a surrogate pair, or the text of an escape sequence', async () => {
    expect(await readJson(requestOf('{"a":"\\ud83d\\ude00"}'), LIMIT)).toEqual({ a: '😀' })
    expect(await readJson(requestOf('{"a":"\\\\u0000"}'), LIMIT)).toEqual({ a: NUL_ESCAPE })
  })

  test('if the whole body is one string, an error about this string calls it "The body"', async () => {
    expect(await faultOf(() => refuseUnstorable('\0', ''))).toEqual(
      bad('The body must not contain a null character'),
    )
    expect(await faultOf(() => refuseUnstorable('\0', 'event.uid'))).toEqual(
      bad('event.uid must not contain a null character'),
    )
    for (const value of [null, 1, true, undefined, 'text', [], {}]) refuseUnstorable(value, '')
  })

  test('the search for forbidden characters in a body accepts 100 nested lists or objects, and refuses deeper nesting', async () => {
    const nested = (levels: number, open: string, close: string) =>
      JSON.parse(`${open.repeat(levels)}1${close.repeat(levels)}`)
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      refuseUnstorable(nested(100, open, close), '')
      expect(await faultOf(() => refuseUnstorable(nested(101, open, close), ''))).toEqual(
        bad('The body must not nest deeper than 100 levels'),
      )
    }
    const deep = `{"a":${'['.repeat(10_000)}"${NUL_ESCAPE}"${']'.repeat(10_000)}}`
    expect(await jsonFault(deep)).toEqual(bad('The body must not nest deeper than 100 levels'))
  })
})

describe('the service reads a body that arrives in chunks, and refuses a body that arrives too slowly', () => {
  const patience = { graceMs: 10, bytesPerS: 1, totalMs: 60_000 }
  /** Creates a request body whose second chunk arrives once the promise `rest` resolves. */
  const late = (rest: Promise<unknown>) => {
    let chunks = 0
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        if (chunks++ > 0) await rest
        controller.enqueue(Buffer.from(chunks === 1 ? '{"a":' : '1}'))
        if (chunks > 1) controller.close()
      },
    })
  }
  const never = new Promise(() => {})
  const slow: [number, string, string] = [408, 'request_timeout', 'The body arrives too slowly']

  test('if the bytes of a body arrive more slowly than the minimum rate after a grace period, the body is refused', async () => {
    const limit = { ...LIMIT, patience: { ...patience, bytesPerS: 1_000_000 } }
    expect(await jsonFault(late(never), {}, limit)).toEqual(slow)
    const read = readJson(requestOf(late(never)), limit)
    expect(read).rejects.toHaveProperty('headers', { connection: 'close' })
    await read.catch(() => {})
  })

  test('a body is refused if it is not complete after the maximum time, even if its bytes arrived fast', async () => {
    const limit = { ...LIMIT, patience: { ...patience, totalMs: 20 } }
    expect(await jsonFault(late(never), {}, limit)).toEqual(slow)
  })

  test('a body is read if it arrives at the minimum rate or faster after the grace period', async () => {
    const body = late(Bun.sleep(60))
    expect(await readJson(requestOf(body), { ...LIMIT, patience })).toEqual({ a: 1 })
  })

  test('within the grace period, a body is accepted at any speed', async () => {
    const limit = { ...LIMIT, patience: { ...patience, graceMs: 5_000, bytesPerS: 1_000_000 } }
    expect(await readJson(requestOf(late(Bun.sleep(60))), limit)).toEqual({ a: 1 })
  })

  test('the reader of a request body passes the length of each chunk of a body to the function `hold`, and waits for the milliseconds that `hold` returns', async () => {
    const held: number[] = []
    const hold = (bytes: number) => {
      held.push(bytes)
      return held.length === 1 ? 40 : 0
    }
    const startedMs = performance.now()
    expect(await readJson(requestOf(chunksOf('{"a":', '1}')), { ...LIMIT, hold })).toEqual({ a: 1 })
    expect(held).toEqual([5, 2])
    expect(performance.now() - startedMs).toBeGreaterThan(35)
  })

  test('if the function `hold`, which slows the reading of a body, throws an error at once or later, the body is refused with this error', async () => {
    const crowded = new ApiError(503, 'unavailable', 'The memory is needed')
    const told: [number, string, string] = [503, 'unavailable', 'The memory is needed']
    const throwing = () => {
      throw crowded
    }
    expect(await jsonFault('{}', {}, { ...LIMIT, hold: throwing })).toEqual(told)
    let cancelled = false
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from('{')),
      cancel() {
        cancelled = true
      },
    })
    const hold = (_bytes: number, end: (error: ApiError) => void) => {
      queueMicrotask(() => end(crowded))
      return 0
    }
    expect(await jsonFault(body, {}, { ...LIMIT, hold })).toEqual(told)
    expect(cancelled).toBe(true)
  })
})

describe('the service reads the fields of an HTML form, and refuses a form that is not valid', () => {
  const FORM = 'application/x-www-form-urlencoded'
  const read = (body: Given, type: string | null = FORM, limit = LIMIT) =>
    readForm(requestOf(body, { type }), limit)

  test('the service reads the fields of an HTML form; if a field name occurs several times, the last value counts', async () => {
    expect(await read('a=1&b=x+y%26&a=2&c')).toEqual({ a: '2', b: 'x y&', c: '' })
    expect(await read('')).toEqual({})
    expect(Object.keys((await read('__proto__=1&constructor=2')) as object)).toEqual([
      '__proto__',
      'constructor',
    ])
  })

  test('a request body is refused as an HTML form unless it has the media type of a URL-encoded form', async () => {
    for (const type of [FORM, FORM.toUpperCase(), `${FORM}; charset=utf-8`, `${FORM} ;a=b`]) {
      expect([type, await read('a=1', type)]).toEqual([type, { a: '1' }])
    }
    for (const type of [`${FORM}2`, `x${FORM}`, 'multipart/form-data', 'text/plain', null]) {
      expect([type, ...(await faultOf(() => read('a=1', type)))]).toEqual([
        type,
        ...([415, 'unsupported_media_type', 'The body must be an HTML form'] as const),
      ])
    }
  })

  test('the limits on bytes and strings also apply to an HTML form', async () => {
    expect(await read('a=12', FORM, { maxBytes: 4 })).toEqual({ a: '12' })
    expect(await faultOf(() => read('a=123', FORM, { maxBytes: 4 }))).toEqual(tooLarge(4))
    expect(await faultOf(() => read('a=%00'))).toEqual(bad('a must not contain a null character'))
    expect(await faultOf(() => read('%00=a'))).toEqual(
      bad('A field name must not contain a null character'),
    )
  })
})
