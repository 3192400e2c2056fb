/**
 * Tests when a gas wallet sends the signed cancellations and transfers of purses (wallets), and which project is
 * charged for the gas.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Keyring } from '../../../../shared/vault/envelope.ts'
import { syncWallet } from '../../../../sql/till/settle/gasWallets.ts'
import { sendPurseCalls } from '../../../../workers/till/settle/sendPurseCalls.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newKeyring, newStoppedPurse } from '../../../support/purse/purseRows.ts'
import { type HandChain, startHandChain } from '../../../support/till/handChain.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
let hand: HandChain
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
  hand = startHandChain(pool)
})
afterAll(async () => {
  hand[Symbol.dispose]()
  await database[Symbol.asyncDispose]()
})

async function sent(): Promise<number> {
  const { rows } = await pool.query('select count(*)::int as n from chain_transactions')
  return rows[0].n
}

async function gasOf(projectId: string): Promise<number> {
  const { rows } = await pool.query(
    'select coalesce(sum(gas), 0)::int as gas from purse_gas where project_id = $1',
    [projectId],
  )
  return rows[0].gas
}

const stoppedWith = (payments: number) => newStoppedPurse(pool, keyring, payments)

test('one transaction contains the signed cancellations of several purses (wallets), and each project is charged for its gas once', async () => {
  const [one, other] = [await stoppedWith(2), await stoppedWith(1)]
  const gas = async () => [await gasOf(one), await gasOf(other)]
  hand.chain = { ...hand.chain, accounts: [] }
  await sendPurseCalls(hand.chain)
  expect(await sent()).toBe(0)
  const account = privateKeyToAccount(generatePrivateKey())
  hand.chain.accounts = [account]
  const { chainId } = hand.chain.network
  await syncWallet(pool, { chainId, address: account.address }, 0n)
  const pass31Seconds = () =>
    pool.query(`update purchases set cancel_sent_at = cancel_sent_at - interval '31 seconds'`)
  await pass31Seconds()
  await sendPurseCalls(hand.chain)
  expect(await sent()).toBe(1)
  await sendPurseCalls(hand.chain)
  expect(await sent()).toBe(1)
  // A cancellation that does not appear on the chain is sent again after half a minute, so the test moves the time.
  await pass31Seconds()
  await sendPurseCalls(hand.chain)
  expect(await sent()).toBe(2)
  expect(await gas()).toEqual([160_000, 80_000])
})
