/** Tests that the deletion of a project does not lose money that its purse (wallet) has or may still get. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { deleteProject } from '../../../sql/account/projects/deleteProject.ts'
import { findErasure } from '../../../sql/account/projects/erasure.ts'
import { purgeProject } from '../../../sql/account/projects/purgeProject.ts'
import { findStaleBalances, recordBalances } from '../../../sql/purse/balances.ts'
import { requeueLostPurchases } from '../../../sql/purse/purchases/purchaseJobs.ts'
import { findPurse } from '../../../sql/purse/purses.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { recordFinal } from '../../../sql/till/watch/finality.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse } from '../../support/purse/purseRows.ts'
import { BLOCK, dropJobs, newPayment, newSettled } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
  await recordHead(pool, {
    ...{ chainId: 84532, network: 'base-sepolia', number: 1_000n, hash: `0x${'64'.repeat(32)}` },
  })
})
afterAll(() => database[Symbol.asyncDispose]())

const CENT = 10_000n
let block = 1_000n

/** Records the balance of an address as read at the next block of the chain, or at the given block. */
async function read(address: string, balanceAtomic: bigint, at = ++block): Promise<void> {
  await recordBalances(pool, at, [{ address: address as Address, balanceAtomic }])
}

/** Makes a project with a purse (wallet) that has no money. */
async function emptyPurse(): Promise<{ projectId: string; address: Address }> {
  const { projectId } = await newPurse(pool, keyring)
  const { address } = (await findPurse(pool, projectId))!
  await read(address, 0n)
  return { projectId, address: address as Address }
}

/** Runs the purge of a deleted project. @returns whether the erasure is complete, and how many purse keys remain. */
async function purge(projectId: string): Promise<[boolean, number]> {
  await dropJobs(pool)
  await purgeProject(pool, projectId)
  const { rowCount } = await pool.query('select from purse_keys where project_id = $1', [projectId])
  return [(await findErasure(pool, projectId))!.completedAt !== null, rowCount!]
}

/** Counts the queued purges of a project. */
const queuedPurges = async (projectId: string) =>
  (
    await pool.query('select from graphile_worker.jobs where key = $1', [
      `purge_project:${projectId}`,
    ])
  ).rowCount

test.each([
  ['is verified', (recipient: Address) => newPayment(pool, { recipient, amountAtomic: CENT })],
  [
    'settled after the last reading of the balance',
    async (recipient: Address) => {
      await pool.query('update purses set balance_block = $1', [String(BLOCK.blockNumber - 1n)])
      await newSettled(pool, { recipient, amountAtomic: CENT })
    },
  ],
] as const)('a project is not deleted while a payment to its purse %s', async (_, pay) => {
  const { projectId, address } = await emptyPurse()
  await pay(address)
  expect(await deleteProject(pool, projectId, null)).toEqual({
    kind: 'purse_awaits',
    amountAtomic: CENT,
  })
})

test('a project can be deleted although somebody pays less than a cent to its purse (wallet), and the purge (data removal) waits for the end of the payment', async () => {
  const { projectId, address } = await emptyPurse()
  const id = await newPayment(pool, { recipient: address, amountAtomic: CENT - 1n })
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([false, 1])
  await pool.query(`update payments set state = 'failed', failure_reason = 'x' where id = $1`, [id])
  expect(await purge(projectId)).toEqual([true, 0])
})

test('a settled payment does not prevent the deletion if the last read balance includes it, and the purge (data removal) waits until its block is final', async () => {
  const { projectId, address } = await emptyPurse()
  const { id } = await newSettled(pool, { recipient: address, amountAtomic: CENT })
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([false, 1])
  await recordFinal(pool, [id])
  expect(await purge(projectId)).toEqual([true, 0])
})

test('the purge (data removal) keeps the keys of a purse (wallet) until a balance that was read after the deletion shows no money', async () => {
  const { projectId, address } = await emptyPurse()
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  expect(await purge(projectId)).toEqual([false, 1])
  expect(await queuedPurges(projectId)).toBe(1)
  await read(address, CENT)
  expect(await purge(projectId)).toEqual([false, 1])
  await read(address, CENT - 1n)
  expect(await purge(projectId)).toEqual([true, 0])
  expect(await queuedPurges(projectId)).toBe(0)
})

test('the purge (data removal) keeps the keys of a purse (wallet) whose balance nobody has read', async () => {
  const { projectId, address } = await emptyPurse()
  await pool.query(
    'update purses set balance_atomic = null, balance_block = null, balance_at = null where project_id = $1',
    [projectId],
  )
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  expect(await purge(projectId)).toEqual([false, 1])
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([true, 0])
})

test('the purge (data removal) keeps the keys of a purse (wallet) while a signed payment is open or its transfer is not final', async () => {
  const purse = await newPurse(pool, keyring)
  const { projectId } = purse
  const { address } = (await findPurse(pool, projectId))!
  expect(await purse.reserve([await purse.wanted(CENT)])).toEqual(['signed'])
  await read(address, 0n)
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([false, 1])
  const set = (change: string) =>
    pool.query(`update purchases set ${change} where project_id = $1`, [projectId])
  await set(`money = 'spent'`)
  expect(await purge(projectId)).toEqual([false, 1])
  await set('final_at = clock_timestamp()')
  expect(await purge(projectId)).toEqual([true, 0])
})

test('a payment that another purse (wallet) has signed to this purse prevents the deletion, and the purge (data removal) waits until the payment has ended', async () => {
  const { projectId, address } = await emptyPurse()
  const other = await newPurse(pool, keyring)
  const paid = await other.wanted(CENT, address)
  expect(await other.reserve([paid])).toEqual(['signed'])
  expect(await deleteProject(pool, projectId, null)).toEqual({
    kind: 'purse_awaits',
    amountAtomic: CENT,
  })
  await pool.query('update purchases set amount_atomic = amount_atomic - 1 where id = $1', [
    paid.id,
  ])
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([false, 1])
  await pool.query(`update purchases set money = 'released' where id = $1`, [paid.id])
  expect(await purge(projectId)).toEqual([true, 0])
})

test('an expired payment on a former chain of the service neither prevents the deletion of a project nor delays its purge', async () => {
  const purse = await newPurse(pool, keyring)
  const { projectId } = purse
  const address = (await findPurse(pool, projectId))!.address as Address
  const other = await newPurse(pool, keyring)
  expect(await purse.reserve([await purse.wanted(CENT)])).toEqual(['signed'])
  expect(await other.reserve([await other.wanted(CENT, address)])).toEqual(['signed'])
  await newPayment(pool, { recipient: address, amountAtomic: CENT })
  const { id } = await newSettled(pool, { recipient: address, amountAtomic: CENT })
  await read(address, 0n)
  const expire = (ago: string) =>
    pool.query(
      `with p as (
         update payments set network = 'base', chain_id = 8453, valid_before = extract(epoch from now() - $3::interval)
         where recipient = $2)
       update purchases set network = 'base', valid_before = extract(epoch from now() - $3::interval)
       where project_id = $1 or pay_to = $2`,
      [projectId, address, ago],
    )
  await expire('1 minute')
  expect(await deleteProject(pool, projectId, null)).toMatchObject({ kind: 'purse_awaits' })
  await expire('2 days')
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([true, 0])
  await recordFinal(pool, [id])
})

test('the purge (data removal) accepts only a purse balance from the last minute, and its pauses become longer with the time since the project’s deletion', async () => {
  const { projectId, address } = await emptyPurse()
  await deleteProject(pool, projectId, null)
  await read(address, 0n)
  const letPass = async (time: string) => {
    await pool.query(
      'update purses set balance_at = balance_at - $2::interval where project_id = $1',
      [projectId, time],
    )
    await pool.query('update projects set deleted_at = deleted_at - $2::interval where id = $1', [
      projectId,
      time,
    ])
  }
  const delays: number[] = []
  for (const time of ['2 minutes', '38 minutes', '9 hours']) {
    await letPass(time)
    expect(await purge(projectId)).toEqual([false, 1])
    const { rows } = await pool.query(
      `select round(extract(epoch from run_at - clock_timestamp()) / 60, 1)::float8 as minutes
       from graphile_worker.jobs where key = $1`,
      [`purge_project:${projectId}`],
    )
    delays.push(rows[0].minutes)
  }
  expect(delays).toEqual([0.5, 10, 60])
  const { rows } = await pool.query('select name, approver_email from projects where id = $1', [
    projectId,
  ])
  expect(rows).toEqual([{ name: '', approver_email: null }])
  await read(address, 0n)
  expect(await purge(projectId)).toEqual([true, 0])
})

test('while the purge of a deleted project waits, its unfinished purchases get no new jobs', async () => {
  const purse = await newPurse(pool, keyring)
  await purse.wanted(CENT)
  await pool.query(
    `update purchases set created_at = created_at - interval '1 hour' where project_id = $1`,
    [purse.projectId],
  )
  await dropJobs(pool)
  expect(await requeueLostPurchases(pool)).toBeGreaterThan(0)
  await dropJobs(pool)
  await pool.query('update projects set deleted_at = clock_timestamp() where id = $1', [
    purse.projectId,
  ])
  await requeueLostPurchases(pool)
  const { rows } = await pool.query(
    `select u.id from purchases u join graphile_worker.jobs j on j.key = 'buy:' || u.id where u.project_id = $1`,
    [purse.projectId],
  )
  expect(rows).toEqual([])
})

test('without a chain, the keys of a purse (wallet) are deleted at once, because nobody can read the balance', async () => {
  await using own = await createTestDatabase()
  const { projectId } = await newPurse(own.pool, await newKeyring(own.pool))
  await own.pool.query('update purses set balance_atomic = null, balance_block = null')
  expect(await deleteProject(own.pool, projectId, null)).toEqual({ kind: 'ok' })
  expect(await purgeProject(own.pool, projectId)).toBe('done')
  expect((await findErasure(own.pool, projectId))!.completedAt).toBeInstanceOf(Date)
})

test('after the deletion of a project, the balance of its purse’s old address is read at once', async () => {
  const { projectId } = await emptyPurse()
  const retired: Address = `0x${'7e'.repeat(20)}`
  await pool.query(
    `insert into purse_keys (address, project_id, key_id, wrapped_key, ciphertext, retired_at, balance_atomic, balance_at)
     select $2, project_id, key_id, wrapped_key, ciphertext, clock_timestamp() - interval '2 days', 0,
       clock_timestamp() - interval '1 minute'
     from purse_keys where project_id = $1`,
    [projectId, retired],
  )
  expect(await findStaleBalances(pool, 100)).not.toContain(retired)
  expect(await deleteProject(pool, projectId, null)).toEqual({ kind: 'ok' })
  expect(await findStaleBalances(pool, 100)).toContain(retired)
})
