/** Tests which reading of a purse's balance (a wallet's balance) the service accepts. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { rotatePurseKey } from '../../../sql/purse/payout.ts'
import { findPurse } from '../../../sql/purse/purses.ts'
import { recordBalances } from '../../../sql/purse/watch.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { newKeyring, newPurse, ownerOf } from '../../support/purse/purseRows.ts'

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

test('after a minute, the balance from a chain that has become shorter replaces the stored balance', async () => {
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
