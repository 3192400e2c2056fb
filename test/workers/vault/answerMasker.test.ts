import { expect, test } from 'bun:test'
import { createAnswerMasker } from '../../../workers/vault/answerMasker.ts'

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

test('a masking child process that takes too long is killed, and the caller gets only the status and pays for the processor time', async () => {
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
