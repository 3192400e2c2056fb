import { expect, test } from 'bun:test'
import { LoopTime } from '../../../../api/http/limits/loopTime.ts'

const MB = 1024 * 1024

test('a project that reads much large JSON must wait, while other projects and other routes need not wait', () => {
  let nowMs = 0
  const time = new LoopTime(() => nowMs)
  const list = (sharer: string) => {
    const reader = { sharer, route: '/list' }
    time.admit(reader)
    time.countJson(reader, 8 * MB)
  }
  const refused = (retryAfter: string) =>
    expect.objectContaining({
      status: 429,
      message: 'Too many large responses: read smaller pages or wait',
      headers: { 'retry-after': retryAfter },
    })
  // One megabyte of JSON counts as 35 ms of processing time. A project may use 5,000 ms at once and gets 100 ms back in
  // each second.
  for (let n = 0; n < 18; n++) list('a')
  expect(() => list('a')).toThrow(refused('1'))
  time.admit({ sharer: 'a', route: '/small' })
  list('b')
  nowMs += 1_000
  list('a')
  expect(() => list('a')).toThrow(refused('3'))
})

test('the running time of a function counts against the processor time of its project even if the function fails', () => {
  const time = new LoopTime()
  const block = (ms: number) => {
    const before = process.cpuUsage()
    while (process.cpuUsage(before).user < ms * 1_000);
    return 'done'
  }
  const a = { sharer: 'a', route: '/page' }
  expect(time.run(a, () => block(10))).toBe('done')
  const failing = () => {
    block(10)
    throw new Error('failed')
  }
  expect(() => time.run(a, failing)).toThrow('failed')
  // The two functions that the project has run above took at least 20 ms. After 142.6 MB of JSON, which counts as 4,991
  // ms, only 9 ms are left, so the project is refused.
  time.countJson(a, 142.6 * MB)
  expect(() => time.admit(a)).toThrow('Too many large responses')
  const b = { sharer: 'b', route: '/page' }
  time.countJson(b, 142.6 * MB)
  time.admit(b)
})
