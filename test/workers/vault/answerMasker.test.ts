import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createAnswerMasker } from '../../../workers/vault/answerMasker.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

const answerOf = (body: string) => ({
  ...{ status: 200, statusText: 'OK', headers: ['x-echo', 'correct horse'], truncated: false },
  body: Buffer.from(body),
})
const LIMITS = { timeMaxMs: 10_000, memoryMaxBytes: 1024 * 1024 * 1024 }

test('a child process masks the secrets in the response to a request that uses a secret', async () => {
  const masker = createAnswerMasker()
  expect(await masker.mask(answerOf('a correct horse'), ['correct horse'], 'prj_a')).toEqual({
    ...{ status: 200, statusText: 'OK', headers: { 'x-echo': '[masked]' } },
    ...{ body: 'a [masked]', bodyOmitted: null },
  })
})

test('a project that has used up its processor time waits for the masking of secrets, and other projects do not wait', async () => {
  const masker = createAnswerMasker(LIMITS, { burstMs: 1, perSecondMs: 1 })
  expect(masker.delayMs('prj_a')).toBe(0)
  await masker.mask(answerOf('a'.repeat(100_000)), ['aaaaaaaa'], 'prj_a')
  expect(masker.delayMs('prj_a')).toBeGreaterThan(0)
  expect(masker.delayMs('prj_b')).toBe(0)
})

test('a masking child process that takes too long is killed, and the caller gets only the status and is charged for the processor time', async () => {
  const masker = createAnswerMasker({ ...LIMITS, timeMaxMs: 1 }, { burstMs: 1, perSecondMs: 1 })
  const shown = await masker.mask(answerOf('%41'.repeat(300_000)), ['correct horse'], 'prj_a')
  expect(shown).toEqual({
    ...{ status: 200, statusText: '', headers: {}, body: null, bodyOmitted: 'too-slow' },
  })
  expect(masker.delayMs('prj_a')).toBeGreaterThan(0)
})

test('a process that masks secrets is killed if the process takes too much memory', async () => {
  const masker = createAnswerMasker({ ...LIMITS, memoryMaxBytes: 1 })
  const shown = await masker.mask(answerOf('%41'.repeat(300_000)), ['correct horse'], 'prj_a')
  expect(shown.bodyOmitted).toBe('too-slow')
})

/** Returns the process ids of the masking processes that this process has started. */
const maskers = (): number[] =>
  spawnSync('pgrep', ['-P', String(process.pid), '-f', 'maskerMain'], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter((line) => line !== '')
    .map(Number)

const started = (before: readonly number[]) =>
  waitFor('a masking process', () => maskers().find((pid) => !before.includes(pid)))

// Masking this body occupies a masking process for a second or more, so that the test can kill the process.
const large = answerOf(`${'%41'.repeat(300_000)} correct horse`)

test('if the kernel kills the masking process once, the caller still gets the response', async () => {
  const before = maskers()
  const masked = createAnswerMasker().mask(large, ['correct horse'], 'prj_a')
  process.kill(await started(before), 'SIGKILL')
  const { body, bodyOmitted } = await masked
  expect([bodyOmitted, body?.slice(-8)]).toEqual([null, '[masked]'])
})

test('a project that has used up its processor time gets no second masking process if the first one was killed', async () => {
  const before = maskers()
  const masker = createAnswerMasker(LIMITS, { burstMs: 1, perSecondMs: 1 })
  const masked = masker.mask(large, ['correct horse'], 'prj_a')
  process.kill(await started(before), 'SIGKILL')
  expect((await masked).bodyOmitted).toBe('masking-failed')
})

test('if the kernel kills each masking process, the caller gets only the status and the reason', async () => {
  const before = maskers()
  let isDone = false
  const masked = createAnswerMasker()
    .mask(large, ['correct horse'], 'prj_a')
    .finally(() => {
      isDone = true
    })
  while (!isDone) {
    const pid = maskers().find((other) => !before.includes(other))
    if (pid !== undefined) process.kill(pid, 'SIGKILL')
    await Bun.sleep(1)
  }
  expect(await masked).toEqual({
    ...{ status: 200, statusText: '', headers: {}, body: null, bodyOmitted: 'masking-failed' },
  })
})
