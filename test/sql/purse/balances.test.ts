/** Tests which newly read balances of a purse (a wallet) the service accepts. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { recordBalances } from '../../../sql/purse/balances.ts'
import { rotatePurseKey, setPurseLimits } from '../../../sql/purse/payout.ts'
import { findPurse } from '../../../sql/purse/purses.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { BALANCE, newKeyring, newPurse, ownerOf } from '../../support/purse/purseRows.ts'
import { whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const read = (address: string, block: bigint, balanceAtomic: bigint) =>
  recordBalances(pool, block, [{ address: address as Address, balanceAtomic }])
const letPass = (table: 'purses' | 'purse_keys', projectId: string, time: string) =>
  pool.query(`update ${table} set balance_at = balance_at - $2::interval where project_id = $1`, [
    projectId,
    time,
  ])

test('a purse balance from an older block does not replace a balance that was read shortly before', async () => {
  const { projectId } = await newPurse(pool, keyring)
  const { address } = (await findPurse(pool, projectId))!
  await read(address, 100n, 7n)
  await letPass('purses', projectId, '50 seconds')
  await read(address, 99n, 8n)
  expect(await findPurse(pool, projectId)).toMatchObject({ balanceAtomic: 7n, balanceBlock: 100n })
  await read(address, 100n, 9n)
  expect(await findPurse(pool, projectId)).toMatchObject({ balanceAtomic: 9n, balanceBlock: 100n })
})

test('a balance from a lower block replaces the stored purse balance after a minute, because the chain may have become shorter', async () => {
  const { projectId } = await newPurse(pool, keyring)
  const { address: old } = (await findPurse(pool, projectId))!
  await read(old, 100n, 7n)
  await letPass('purses', projectId, '2 minutes')
  await read(old, 3n, 5n)
  expect(await findPurse(pool, projectId)).toMatchObject({ balanceAtomic: 5n, balanceBlock: 3n })
  await rotatePurseKey(pool, keyring, ownerOf(projectId))
  await read(old, 200n, 7n)
  await letPass('purse_keys', projectId, '2 minutes')
  await read(old, 4n, 6n)
  const { rows } = await pool.query(
    'select balance_atomic::int as balance from purse_keys where address = $1',
    [old],
  )
  expect(rows).toEqual([{ balance: 6 }])
})

test('a purse (wallet) with a new key does not count as low while the money is on the way to its new address', async () => {
  await recordHead(pool, {
    ...{ chainId: 84532, network: 'base-sepolia', number: 100n, hash: `0x${'64'.repeat(32)}` },
  })
  const { projectId } = await newPurse(pool, keyring)
  const owner = ownerOf(projectId)
  const lowEvents = async () =>
    (
      await pool.query(
        `select data ->> 'balanceUsdcRaw' as balance from events where project_id = $1 and type = 'purse.low'`,
        [projectId],
      )
    ).rows
  await setPurseLimits(pool, keyring, owner, { lowAtomic: BALANCE })
  expect((await rotatePurseKey(pool, keyring, owner))?.movedAtomic).toBe(BALANCE)
  const { address } = (await findPurse(pool, projectId))!
  await read(address, 101n, 0n)
  await pool.query(
    `update purchases set money = 'spent', block_number = 103 where project_id = $1`,
    [projectId],
  )
  await read(address, 102n, 0n)
  expect(await lowEvents()).toEqual([])
  await read(address, 103n, BALANCE)
  expect(await lowEvents()).toEqual([])
  await read(address, 104n, BALANCE - 1n)
  await read(address, 105n, BALANCE - 2n)
  expect(await lowEvents()).toEqual([{ balance: String(BALANCE - 1n) }])
})

test('if two processes record a low balance at the same time, only one event reports it', async () => {
  const { projectId } = await newPurse(pool, keyring)
  await setPurseLimits(pool, keyring, ownerOf(projectId), { lowAtomic: BALANCE })
  const { address } = (await findPurse(pool, projectId))!
  await whileHeld(pool, 'select from purses where project_id = $1 for update', [projectId], () => [
    read(address, 200n, BALANCE - 1n),
    read(address, 200n, BALANCE - 1n),
  ])
  const { rows } = await pool.query(
    `select from events where project_id = $1 and type = 'purse.low'`,
    [projectId],
  )
  expect(rows).toHaveLength(1)
})
