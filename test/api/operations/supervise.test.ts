import { expect, test } from 'bun:test'
import type { Logger } from 'pino'
import { type RunningPart, supervise } from '../../../api/operations/supervise.ts'
import { ConfigError } from '../../../shared/config/config.ts'
import { waitFor } from '../../support/waitFor.ts'

/** Makes a part of the process, which the test can fail and stop, and collects the log lines about this part. */
function makePart() {
  const lines: { message: string; fields: any }[] = []
  const write = (fields: object, message: string) => lines.push({ message, fields })
  const launches: PromiseWithResolvers<string>[] = []
  const part = {
    lines,
    launches,
    failure: null as Error | null,
    async launch(): Promise<RunningPart> {
      const ended = Promise.withResolvers<string>()
      launches.push(ended)
      if (part.failure !== null) throw part.failure
      return { ended: ended.promise, stop: async () => ended.resolve('stopped') }
    },
    start: () =>
      supervise('thing', part.launch, { error: write, warn: write } as unknown as Logger),
  }
  return part
}

test('if a part of the service cannot restart, the supervisor retries after growing pauses, and logs the outage once', async () => {
  const part = makePart()
  const supervised = await part.start()
  part.failure = new Error('no room')
  const startedMs = performance.now()
  part.launches[0]!.resolve('it crashed')
  await waitFor('three tries', () => part.launches.length === 4)
  // The pauses between the restart attempts are 250, 500 and 1000 ms, so three attempts take more than 1,700 ms.
  expect(performance.now() - startedMs).toBeGreaterThan(1_700)
  part.failure = null
  await waitFor('the end of the outage', () => part.lines.length === 3)
  expect(part.lines).toEqual([
    {
      message: 'a part ended; starting it again',
      fields: { part: 'thing', reason: 'it crashed' },
    },
    { message: 'a part cannot start; will try on', fields: { part: 'thing', reason: 'no room' } },
    { message: 'a part is back', fields: { part: 'thing', tries: 4, awayMs: expect.any(Number) } },
  ])
  await supervised.stop()
})

test('the supervisor tries the first start of a part of the service three times, but only once if the part refuses its settings', async () => {
  const failing = makePart()
  failing.failure = new Error('killed')
  await expect(failing.start()).rejects.toThrow('killed')
  expect(failing.launches).toHaveLength(3)
  const refusing = makePart()
  refusing.failure = new ConfigError('PORT: taken')
  await expect(refusing.start()).rejects.toThrow('PORT: taken')
  expect(refusing.launches).toHaveLength(1)
})

test('if a part of the service is stopped on purpose, the supervisor does not start it again, even if a restart is pending', async () => {
  const part = makePart()
  const supervised = await part.start()
  part.failure = new Error('no room')
  part.launches[0]!.resolve('it crashed')
  await waitFor('a try', () => part.launches.length === 2)
  await supervised.stop()
  expect(part.launches).toHaveLength(2)
})
