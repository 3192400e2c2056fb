/**
 * Runs alone, on a test database, the job that sends a request with a secret. Therefore another process can change rows
 * between two steps of the job.
 */
import { afterAll, beforeAll, beforeEach, expect, setSystemTime, test } from 'bun:test'
import { checkUseRequest, type UseRequest } from '../../../shared/vault/useRequest.ts'
import { acceptUse } from '../../../sql/vault/acceptUse.ts'
import {
  deleteCredential,
  type GivenContent,
  storeCredential,
} from '../../../sql/vault/credentials.ts'
import { findUse } from '../../../sql/vault/uses.ts'
import { createAnswerMasker } from '../../../workers/vault/answerMasker.ts'
import { createUseSecret } from '../../../workers/vault/useSecret.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import { newKeyring, ownerOf } from '../../support/purse/purseRows.ts'
import { newProject } from '../../support/till/tillRows.ts'

const TURN = { granted: true, waited: false, leave: () => {} }
const LIMITS = { timeMaxMs: 10_000, memoryMaxBytes: 1024 * 1024 * 1024 }

let database: TestDatabase
let keyring: Awaited<ReturnType<typeof newKeyring>>
let server: Receiver
let projectId: string
/** Runs when the job requests permission to send, which is after the job has read the stored request. */
let onTurn: () => Promise<object>
let turns = 0

beforeAll(async () => {
  database = await createTestDatabase()
  keyring = await newKeyring(database.pool)
  server = await startReceiver()
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})
beforeEach(async () => {
  projectId = await newProject(database.pool)
  await store()
  server.requests.length = 0
  onTurn = async () => TURN
  turns = 0
})

const start = (masker?: ReturnType<typeof createAnswerMasker>) => {
  const enter = () => {
    turns++
    return onTurn()
  }
  const outcomes = { record: (work: () => unknown) => work() }
  const run = createUseSecret(
    { pool: database.pool, lanes: { enter }, outcomes } as never,
    { keyring: async () => keyring, policy: { allowPrivate: true } },
    masker,
  )
  return (useId: string) => run({ useId }, { attempt: 1 })
}
const run = (id: string) => start()(id)

const target = () => ({ actor: ownerOf(projectId), keyring, name: 'n', isOwner: true })
const store = (change: Partial<GivenContent> = {}) =>
  storeCredential(database.pool, {
    ...target(),
    content: {
      ...{ type: 'API_KEY', data: { apiKey: 'correct horse' }, metadata: {}, expiresAt: null },
      ...{ allowedHosts: [`127.0.0.1:${server.port}`], placement: ['header:authorization'] },
      ...change,
    },
  })

async function accept(): Promise<string> {
  const headers = { authorization: '{{apiKey}}' }
  const request: UseRequest = { method: 'GET', url: server.url, headers, body: null }
  const accepted = await acceptUse<never>(database.pool, {
    ...{ actor: ownerOf(projectId), keyring, name: 'n', request, idempotency: null },
    ...{ target: checkUseRequest(request, { allowLoopback: true }), judge: () => null },
  })
  if (accepted.kind !== 'ok') throw new Error(accepted.kind)
  return accepted.id
}
const change = (id: string, set: string) =>
  database.pool.query(`update vault_uses set ${set} where id = $1`, [id])
async function end(id: string) {
  await change(id, `expires_at = now() + interval '1 minute'`)
  const use = (await findUse(database.pool, { projectId, id, keyring }))!
  return [use.state, use.error]
}
/** Returns the milliseconds until the job that makes the request with the secret runs. */
async function pauseMs(id: string): Promise<number> {
  const { rows } = await database.pool.query(
    `select extract(epoch from run_at - clock_timestamp()) * 1000 as ms from graphile_worker.jobs where key = $1`,
    [`use_secret:${id}`],
  )
  return Number(rows[0].ms)
}

test('if a request with a secret is deleted or has ended, its job sends nothing and does not ask for permission to send', async () => {
  await run('use_none')
  const id = await accept()
  await change(id, `state = 'failed', error = 'before', ended_at = now()`)
  await run(id)
  expect([turns, server.requests, await end(id)]).toEqual([0, [], ['failed', 'before']])
})

test('if a request with a secret waits too long for a worker, it fails and is not sent', async () => {
  const id = await accept()
  await change(id, `expires_at = now() - interval '1 second'`)
  await run(id)
  expect([turns, server.requests]).toEqual([0, []])
  expect(await end(id)).toEqual(['failed', 'it waited too long for a worker'])
})

test('if the credential cannot be read before a request with a secret is sent, a later run of the job sends the request', async () => {
  const id = await accept()
  await database.pool.query('alter table credential_versions rename column ciphertext to hidden')
  await expect(run(id)).rejects.toThrow('ciphertext')
  await database.pool.query('alter table credential_versions rename column hidden to ciphertext')
  await run(id)
  expect([server.requests.length, await end(id)]).toEqual([1, ['answered', null]])
})

test('if two workers begin the same request with a secret, the request is sent only once', async () => {
  const id = await accept()
  onTurn = async () => {
    await change(id, `state = 'sending'`)
    return TURN
  }
  await run(id)
  expect([server.requests, await end(id)]).toEqual([[], ['sending', null]])
})

test('if a request with a secret gets no permission to send now, its job tries again later', async () => {
  const id = await accept()
  onTurn = async () => ({ granted: false, returnInMs: 60_000 })
  await run(id)
  expect([server.requests, await end(id)]).toEqual([[], ['queued', null]])
  expect(await pauseMs(id)).toBeWithin(50_000, 60_001)
})

test('a request with a secret that waits is due by the clock of the database, even if the clock of the worker is wrong', async () => {
  for (const aheadMs of [3_600_000, -3_600_000]) {
    const id = await accept()
    onTurn = async () => ({ granted: false, returnInMs: 60_000 })
    setSystemTime(Date.now() + aheadMs)
    await run(id).finally(() => setSystemTime())
    expect(await pauseMs(id)).toBeWithin(50_000, 60_001)
  }
})

test('a request with a secret waits while its project has used up the processor time for masking secrets in responses', async () => {
  const masker = createAnswerMasker(LIMITS, { burstMs: 1, perSecondMs: 0.001 })
  const runs = start(masker)
  await runs(await accept())
  expect([turns, server.requests.length]).toEqual([1, 1])
  const later = await accept()
  await runs(later)
  expect([turns, await end(later)]).toEqual([1, ['queued', null]])
  expect(await pauseMs(later)).toBeGreaterThan(1_000)
})

const CHANGES: [string, () => Promise<unknown>, string][] = [
  [
    'was deleted',
    () => deleteCredential(database.pool, target()),
    'the credential is gone or has expired',
  ],
  [
    'may go to other hosts only',
    () => store({ allowedHosts: ['bank.example'] }),
    'the credential must not be used at 127.0.0.1:PORT: see its allowedHosts',
  ],
  [
    'has other fields',
    () => store({ type: 'LOGIN', data: { password: 'x' } }),
    '{{apiKey}} has no value in this credential',
  ],
]
for (const [name, before, error] of CHANGES) {
  test(`a waiting request with a secret is not sent if its credential ${name} in the meantime`, async () => {
    const id = await accept()
    await before()
    await run(id)
    expect(server.requests).toEqual([])
    expect(await end(id)).toEqual(['failed', error.replace('PORT', `${server.port}`)])
  })
}
