/**
 * Tests stored requests that use a secret: after a change of the master key, and after the expiry of a stored request.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Keyring, masterKey } from '../../../shared/vault/envelope.ts'
import { keysInUse, masterKeys } from '../../../sql/keyring/keyring.ts'
import { rotateMasterKey } from '../../../sql/keyring/rotation.ts'
import { acceptUse, KEPT_BYTES_MAX } from '../../../sql/vault/acceptUse.ts'
import {
  deleteExpiredUses,
  endUse,
  findDueUse,
  findUse,
  startUse,
} from '../../../sql/vault/uses.ts'
import { type Answer, startTestService, type TestService } from '../../support/service.ts'
import { whileHeld } from '../../support/till/tillRows.ts'
import { vaultPath as path } from '../../support/vault/vault.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

async function newUse() {
  const agent = await service.newAgent()
  const metadata = { uri: 'https://bank.example' }
  await agent.put(path('n'), { type: 'LOGIN', data: { password: 'correct' }, metadata })
  const request = {
    url: 'https://bank.example/a',
    method: 'POST',
    body: { password: '{{password}}' },
  }
  const { body } = await agent.post(path('n', '/use?timeout=0'), { request })
  expect(body.state).toBe('pending')
  return { id: body.useId as string, projectId: agent.project.id }
}

test('a stored request with a secret, and its response, can be read after a change of the master key', async () => {
  const { pool } = service.database
  const old = masterKeys(service.config)
  const next = masterKey('next', randomBytes(32))
  await pool.query('insert into master_keys (id, check_value) values ($1, $2)', [
    'next',
    randomBytes(32),
  ])
  const keyring = new Keyring([next, ...old])
  const alone = new Keyring([next])
  const { id, projectId } = await newUse()
  expect(await keysInUse(pool)).toEqual([old[0]!.id])
  await rotateMasterKey(pool, keyring, () => {})
  expect(await keysInUse(pool)).toEqual(['next'])
  expect(await startUse(pool, id, alone)).toEqual({
    ...{ method: 'POST', url: 'https://bank.example/a' },
    headers: { 'content-type': 'application/json' },
    body: '{"password":"{{password}}"}',
  })
  expect(await startUse(pool, id, alone)).toBeNull()
  const answer = { status: 200, statusText: '', headers: {}, body: 'b', bodyOmitted: null }
  await endUse(pool, { id, keyring: new Keyring(old), end: { state: 'answered', answer } })
  await endUse(pool, { id, keyring, end: { state: 'failed', error: 'a second end' } })
  await rotateMasterKey(pool, keyring, () => {})
  const use = await findUse(pool, { projectId, id, keyring: alone })
  expect(use).toMatchObject({ state: 'answered', answer, error: null })
})

test('a stored request with a secret is deleted after its expiry, and other stored requests are kept', async () => {
  const { pool } = service.database
  const [gone, kept] = [await newUse(), await newUse()]
  await pool.query(
    `update vault_uses set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [gone.id],
  )
  // A job of this request with a secret still waits for a worker, and will record the end of the request.
  await deleteExpiredUses(pool)
  const { rowCount } = await pool.query('select from vault_uses where id = $1', [gone.id])
  expect(rowCount).toBe(1)
  const keyring = new Keyring(masterKeys(service.config))
  await endUse(pool, { id: gone.id, keyring, end: { state: 'failed', error: 'late' } })
  await pool.query(
    `update vault_uses set expires_at = clock_timestamp() - interval '1 second' where id = $1`,
    [gone.id],
  )
  await deleteExpiredUses(pool)
  const { rows } = await pool.query('select id from vault_uses where id = any ($1)', [
    [gone.id, kept.id],
  ])
  expect(rows).toEqual([{ id: kept.id }])
})

test('a request with a secret that has not ended can be read for longer than ten minutes', async () => {
  const { pool } = service.database
  const agent = await service.newAgent()
  const metadata = { uri: 'https://bank.example' }
  await agent.put(path('n'), { type: 'LOGIN', data: { password: 'correct' }, metadata })
  const request = { url: 'https://bank.example/a', body: { password: '{{password}}' } }
  const call = () =>
    agent.post(path('n', '/use?timeout=0'), { request }, { 'idempotency-key': 'once' })
  const { useId } = (await call()).body
  const outcome = ({ status, body }: Answer) => [status, body.useId, body.state]
  const read = async () => outcome(await agent.get(path('n', `/uses/${useId}?timeout=0`)))
  const expire = () =>
    pool.query(`update vault_uses set expires_at = clock_timestamp() where id = $1`, [useId])
  await expire()
  expect(await read()).toEqual([202, useId, 'pending'])
  expect(outcome(await call())).toEqual([202, useId, 'pending'])
  const keyring = new Keyring(masterKeys(service.config))
  await endUse(pool, { id: useId, keyring, end: { state: 'failed', error: 'late' } })
  expect(await read()).toEqual([200, useId, 'failed'])
  await expire()
  expect((await read())[0]).toBe(404)
})

test('a request with a secret is no longer due after the deletion of its project', async () => {
  const { pool } = service.database
  const { id, projectId } = await newUse()
  expect(await findDueUse(pool, id)).toMatchObject({ projectId, state: 'queued', expired: false })
  await pool.query('update projects set deleted_at = clock_timestamp() where id = $1', [projectId])
  expect(await findDueUse(pool, id)).toBeNull()
  expect(await findDueUse(pool, 'use_unknown')).toBeNull()
})

test('a project may not start another request with a secret while its stored requests exceed the byte limit', async () => {
  const { pool } = service.database
  const agent = await service.newAgent()
  const metadata = { uri: 'https://bank.example' }
  await agent.put(path('n'), { type: 'LOGIN', data: { password: 'correct' }, metadata })
  const use = () =>
    agent.post(path('n', '/use?timeout=0'), {
      request: {
        url: 'https://bank.example/a',
        method: 'POST',
        body: { password: '{{password}}' },
      },
    })
  expect((await use()).status).toBe(202)
  const fill = (bytes: number) =>
    pool.query(
      `update vault_uses set ciphertext = decode(repeat('00', $2), 'hex') where project_id = $1`,
      [agent.project.id, bytes],
    )
  await fill(KEPT_BYTES_MAX)
  expect(await use()).toMatchObject({ status: 429, body: { error: 'rate_limited' } })
  await fill(KEPT_BYTES_MAX - 1)
  expect((await use()).status).toBe(202)
})

test('if a crash interrupted a request with a secret, its row is kept beyond the expiry until the end of the request is recorded', async () => {
  const { pool } = service.database
  const { id, projectId } = await newUse()
  const keyring = new Keyring(masterKeys(service.config))
  await pool.query(
    `update vault_uses set state = 'sending', expires_at = clock_timestamp() - interval '1 hour' where id = $1`,
    [id],
  )
  await deleteExpiredUses(pool)
  await endUse(pool, { id, keyring, end: { state: 'unknown', error: 'cut off' } })
  expect(await findUse(pool, { projectId, id, keyring })).toMatchObject({ state: 'unknown' })
  const { rows } = await pool.query(
    `select data->>'state' as state from events where project_id = $1 and type = 'vault.used'`,
    [projectId],
  )
  expect(rows).toEqual([{ state: 'unknown' }])
})

test('if a project is deleted during its API call, the request with a secret is not stored', async () => {
  const { pool } = service.database
  const { projectId } = await newUse()
  await pool.query('update projects set deleted_at = now() where id = $1', [projectId])
  const accepted = await acceptUse<never>(pool, {
    actor: { projectId, keyPrefix: 'test', requestId: 'r' },
    keyring: new Keyring(masterKeys(service.config)),
    name: 'n',
    request: { method: 'GET', url: 'https://bank.example/a', headers: {}, body: null },
    target: { method: 'GET', host: 'bank.example', path: '/a' },
    idempotency: null,
    judge: () => null,
  })
  expect(accepted).toEqual({ kind: 'no_project' })
})

test('if two processes record the end of a request with a secret at the same time, one event reports the end', async () => {
  const { pool } = service.database
  const keyring = new Keyring(masterKeys(service.config))
  const { id, projectId } = await newUse()
  expect(await startUse(pool, id, keyring)).not.toBeNull()
  const end = (error: string) =>
    endUse(pool, { id, keyring, end: { state: 'unknown' as const, error } })
  await whileHeld(pool, 'select from vault_uses where id = $1 for update', [id], () => [
    end('first'),
    end('second'),
  ])
  const { rows } = await pool.query(
    `select data ->> 'state' as state from events where project_id = $1 and type = 'vault.used'`,
    [projectId],
  )
  expect(rows).toEqual([{ state: 'unknown' }])
})
