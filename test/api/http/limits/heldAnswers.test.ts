import { expect, test } from 'bun:test'
import { HeldAnswers } from '../../../../api/http/limits/heldAnswers.ts'
import { waitFor } from '../../../support/waitFor.ts'

const MB = 1024 * 1024
const read = async () => Buffer.alloc(MB, 'x')
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: Error) => error)

test('a response body occupies its memory until the client has read it to the end or has cancelled it', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  const bodies = [await answers.body('a', MB, read)]
  expect((await failure(answers.body('a', MB, read)))?.message).toMatch(/Too many large contents/)
  expect((await new Response(bodies.pop()).arrayBuffer()).byteLength).toBe(MB)
  const second = (await answers.body('a', MB, read)) as ReadableStream
  await second.cancel()
  await answers.body('a', MB, read)
})

test('a response body of at most 256 KB is returned whole, even if other responses occupy all the memory', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  await answers.body('a', MB, read)
  const small = async (bytes: number) => {
    const body = await answers.body('a', bytes, async () => Buffer.alloc(bytes))
    return body instanceof Uint8Array ? body.length : 'a stream'
  }
  expect(await small(256 * 1024)).toBe(256 * 1024)
  expect((await failure(small(256 * 1024 + 1)))?.message).toMatch(/Too many large contents/)
  await answers.body('b', MB / 2, async () => Buffer.alloc(MB / 2))
  expect(await answers.body('b', 1, read)).toBeInstanceOf(ReadableStream)
})

test('a response that grows part by part leaves out optional parts that do not fit into the memory, and always takes its required parts', async () => {
  const answers = new HeldAnswers({ totalBytes: 8 * MB })
  const growing = answers.grow('a', 3 * MB)
  expect([growing.add(2 * MB, false), growing.add(2 * MB, false)]).toEqual([true, false])
  expect(growing.add(2 * MB, true)).toBe(true)
  // The project's responses now occupy 4 MB, which is the half of the memory that one project may use.
  expect(answers.grow('a', 3 * MB).add(MB, false)).toBe(false)
  expect((await failure(answers.body('a', MB, read)))?.message).toMatch(/Too many large contents/)
  const body = growing.body(Buffer.alloc(MB))
  expect((await failure(answers.body('a', MB, read)))?.message).toMatch(/Too many large contents/)
  await new Response(body).arrayBuffer()
  expect(growing.add(8 * MB, true)).toBe(true)
  const later = answers.grow('a', 8 * MB)
  expect(later.add(4 * MB, false)).toBe(true)
  later.release()
  expect(answers.grow('a', 8 * MB).add(4 * MB, false)).toBe(true)
})

test('work on a large response waits for free memory, and work on a small response does not', async () => {
  const answers = new HeldAnswers()
  const work = (bytes: number) => answers.during('a', bytes, async () => 'done')
  const half = 64 * MB
  await answers.during('a', half, async () => {
    expect((await failure(work(256 * 1024 + 1)))?.message).toMatch(/Too many large contents/)
    expect(await work(256 * 1024)).toBe('done')
  })
  expect(await work(half)).toBe('done')
})

test('if reading a response body fails, the memory of this body is free again', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  for (let n = 0; n < 5; n++) {
    const error = await failure(answers.body('a', MB, () => Promise.reject(new Error('gone'))))
    expect(error?.message).toBe('gone')
  }
})

test('a client that reads too slowly loses its response, and the memory of this response is free again', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB, readMaxMs: 20 })
  const slow = (await answers.body('a', MB, read)) as ReadableStream<Uint8Array>
  const reader = slow.getReader()
  await waitFor('the end of the time to read', async () => {
    const free = await answers.body('a', MB, async () => Buffer.alloc(1)).catch(() => null)
    return free !== null
  })
  expect((await failure(reader.read()))?.message).toMatch(/too slowly/)
  await answers.body('a', MB, read)
})

test('if memory is needed, responses that were not read for three minutes are dropped, first those of the project that occupies the most memory', async () => {
  let nowMs = 0
  const answers = new HeldAnswers({ totalBytes: 8 * MB, nowMs: () => nowMs })
  const open = async (projectId: string) => {
    const stream = (await answers.body(projectId, MB, read)) as ReadableStream<Uint8Array>
    return stream.getReader()
  }
  // A project that already occupies memory gets at most half of the memory that is still free, so there is memory left
  // for the project `b`.
  const greedy = [await open('a'), await open('a'), await open('a'), await open('a')]
  const other = await open('b')
  nowMs += 179_999
  await greedy[0]!.read()
  expect((await failure(answers.body('c', 4 * MB, read)))?.message).toMatch(/Too many large/)
  nowMs += 1
  const late = await answers.body('c', 4 * MB, read)
  expect((await failure(greedy[1]!.read()))?.message).toMatch(/too slowly/)
  for (const reader of [greedy[0]!, greedy[2]!, greedy[3]!, other]) {
    expect((await reader.read()).value).toHaveLength(64 * 1024)
  }
  expect(late).toBeInstanceOf(ReadableStream)
})

test('if a request cannot get enough memory in any case, the service refuses the request and drops no unread response to another request', async () => {
  let nowMs = 0
  const answers = new HeldAnswers({ totalBytes: 8 * MB, nowMs: () => nowMs })
  const waiting = ((await answers.body('a', MB, read)) as ReadableStream<Uint8Array>).getReader()
  nowMs += 180_000
  await answers.body('b', 3 * MB, read)
  // With this response, the project `b` would occupy more than half of the memory that the other projects leave free.
  expect((await failure(answers.body('b', 4 * MB, read)))?.message).toMatch(/Too many large/)
  expect((await waiting.read()).value).toHaveLength(64 * 1024)
})

test('after the service drops a response, its memory is free again, so a later response is accepted', async () => {
  let nowMs = 0
  const answers = new HeldAnswers({ totalBytes: 2 * MB, nowMs: () => nowMs })
  await answers.body('a', 2 * MB, read)
  expect((await failure(answers.body('b', MB, read)))?.message).toMatch(/Too many large/)
  nowMs += 180_000
  expect(await answers.body('b', MB, read)).toBeInstanceOf(ReadableStream)
})

test('unread responses do not prevent work on drafts, although they occupy all the memory', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  await answers.body('a', 2 * MB, read)
  expect(await answers.during('b', 2 * MB, async () => 'sent')).toBe('sent')
})
