import { expect, test } from 'bun:test'
import { HeldAnswers } from '../../../api/http/limits/heldAnswers.ts'

const MB = 1024 * 1024
const read = async () => Buffer.alloc(MB, 'x')
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: Error) => error)

test('a content keeps its share of the memory until it is read to the end or cancelled', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  const bodies = [await answers.body('a', MB, read)]
  expect((await failure(answers.body('a', MB, read)))?.message).toMatch(/Too many large contents/)
  expect((await new Response(bodies.pop()).arrayBuffer()).byteLength).toBe(MB)
  const second = (await answers.body('a', MB, read)) as ReadableStream
  await second.cancel()
  await answers.body('a', MB, read)
})

test('a content that cannot be read gives its share of the memory back', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  for (let n = 0; n < 5; n++) {
    const error = await failure(answers.body('a', MB, () => Promise.reject(new Error('gone'))))
    expect(error?.message).toBe('gone')
  }
})

test('a client that reads too slowly loses its response, and its share of the memory is free again', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB, readMaxMs: 20 })
  const slow = (await answers.body('a', MB, read)) as ReadableStream<Uint8Array>
  const reader = slow.getReader()
  await reader.read()
  await Bun.sleep(60)
  expect((await failure(reader.read()))?.message).toMatch(/too slowly/)
  await answers.body('a', MB, read)
})

test('responses that clients do not read do not refuse the work on drafts', async () => {
  const answers = new HeldAnswers({ totalBytes: 2 * MB })
  await answers.body('a', 2 * MB, read)
  expect(await answers.during('b', 2 * MB, async () => 'sent')).toBe('sent')
})
