/**
 * Tests the withdrawal of all unreserved money of a purse (wallet), and which signed transfers the service sends to the
 * chain.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import { transaction } from '../../../sql/db.ts'
import { sweepPurse, takeTransfers } from '../../../sql/purse/transferOut.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { BALANCE, newKeyring, newPurse, ownerOf } from '../../support/purse/purseRows.ts'
import { newProject, row } from '../../support/till/tillRows.ts'

const { network, chainId, usdcAddress } = USDC_NETWORKS['base-sepolia']
const PAY_TO = `0x${'Ab'.repeat(20)}` as const

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
beforeEach(async () => {
  await pool.query('truncate chain_status')
  await pool.query(`update purchases set money = 'released' where money = 'open'`)
})
afterAll(() => database[Symbol.asyncDispose]())

const knowChain = () => recordHead(pool, { network, chainId, number: 7n, hash: '0x7' })
const sweep = (projectId: string) => sweepPurse(pool, keyring, ownerOf(projectId), PAY_TO)
const take = (limit = 10) => takeTransfers(pool, network, limit)

/** Makes a purse (a wallet) that sends all its money to another address. */
async function newSweep(): Promise<{ id: string; projectId: string }> {
  const { projectId } = await newPurse(pool, keyring)
  const swept = await sweep(projectId)
  if (swept.kind !== 'ok') throw new Error(swept.kind)
  return { id: swept.id, projectId }
}
const noncesOf = (ids: string[]) =>
  Promise.all(ids.map(async (id) => (await row(pool, 'purchases', id)).nonce))

describe('an owner can withdraw all money of a purse (wallet) that is not reserved for open payments', () => {
  test('a withdrawal from a purse (wallet) is refused without a purse, a known chain, or money that is not reserved', async () => {
    const none = await newProject(pool)
    const { projectId } = await newPurse(pool, keyring)
    expect(await sweep(none)).toEqual({ kind: 'no_purse' })
    expect(await sweep(projectId)).toEqual({ kind: 'no_chain' })
    await knowChain()
    await pool.query('update purses set balance_atomic = 0 where project_id = $1', [projectId])
    expect(await sweep(projectId)).toEqual({ kind: 'nothing_free' })
    await pool.query('update purses set balance_atomic = 1 where project_id = $1', [projectId])
    expect(await sweep(projectId)).toMatchObject({ kind: 'ok', amountAtomic: 1n })
  })

  test('a withdrawal transfers all money of a purse (wallet) that is not reserved, and a second withdrawal finds nothing', async () => {
    await knowChain()
    const { id, projectId } = await newSweep()
    expect(await row(pool, 'purchases', id)).toMatchObject({
      ...{ kind: 'sweep', state: 'signed', money: 'open', amount_atomic: String(BALANCE) },
      ...{ pay_to: PAY_TO.toLowerCase(), network, asset: usdcAddress.toLowerCase() },
      ...{ signed_block: '7', refund_of: null },
    })
    const { rows } = await pool.query('select detail from audit_log where subject = $1', [id])
    expect(rows).toEqual([{ detail: `${BALANCE} to ${PAY_TO}` }])
    expect(await sweep(projectId)).toEqual({ kind: 'nothing_free' })
  })
})

describe('a worker takes each signed transfer once, and again after a pause', () => {
  beforeEach(knowChain)

  test('a worker claims a signed transfer out of the purse (wallet), and again only after 30 seconds', async () => {
    const { id } = await newSweep()
    const stored = await row(pool, 'purchases', id)
    expect(await take()).toEqual([
      {
        ...{ id, asset: stored.asset, payer: stored.payer, recipient: stored.pay_to },
        ...{ amountAtomic: BALANCE, validAfter: 0n, validBefore: BigInt(stored.valid_before) },
        ...{ nonce: stored.nonce, signature: stored.transfer_signature },
      },
    ])
    const passSeconds = (seconds: number) =>
      pool.query(
        'update purchases set transfer_sent_at = transfer_sent_at - make_interval(secs => $1)',
        [seconds],
      )
    await passSeconds(20)
    expect(await take()).toEqual([])
    await passSeconds(11)
    expect(await take()).toHaveLength(1)
  })

  test('the wait before a worker takes a failing transfer again doubles from 30 seconds to 8 minutes', async () => {
    const { id } = await newSweep()
    expect(await take()).toHaveLength(1)
    const sentBefore = (seconds: number) =>
      pool.query(
        'update purchases set transfer_sent_at = clock_timestamp() - make_interval(secs => $2) where id = $1',
        [id, seconds],
      )
    for (const seconds of [30, 60, 120, 240, 480, 480]) {
      await sentBefore(seconds - 1)
      expect([seconds, await take()]).toEqual([seconds, []])
      // The column `transfer_sent_at` keeps only milliseconds. A time of exactly the given number of seconds ago could
      // count as slightly less, so the test adds a second.
      await sentBefore(seconds + 1)
      expect(await take()).toHaveLength(1)
    }
  })

  test('a worker claims a transfer out of the purse (wallet) only if it is open, valid, not cancelled and on the same chain', async () => {
    const { id } = await newSweep()
    for (const change of [
      `money = 'spent'`,
      `money = 'released'`,
      'transfer_signature = null',
      `cancel_signature = '0x'`,
      `network = 'base'`,
      'valid_before = extract(epoch from clock_timestamp())::bigint - 1',
    ]) {
      const [column = ''] = change.split(' ')
      const before = (await row(pool, 'purchases', id))[column]
      await pool.query(`update purchases set ${change} where id = $1`, [id])
      expect([change, await take()]).toEqual([change, []])
      await pool.query(`update purchases set ${column} = $2 where id = $1`, [id, before])
    }
    expect(await take()).toHaveLength(1)
  })

  test('a worker claims a purse (wallet) transfer that was never sent before a transfer that was sent long ago', async () => {
    const [sent, fresh] = [(await newSweep()).id, (await newSweep()).id]
    await pool.query(
      `update purchases set transfer_sent_at = clock_timestamp() - interval '1 hour' where id = $1`,
      [sent],
    )
    const taken = [...(await take(1)), ...(await take(1))].map(({ nonce }) => nonce)
    expect(taken).toEqual(await noncesOf([fresh, sent]))
  })

  test('two workers never take the same transfer, and do not wait for each other', async () => {
    await newSweep()
    await transaction(pool, async (db) => {
      expect(await takeTransfers(db, network, 1)).toHaveLength(1)
      expect(await take()).toEqual([])
      await newSweep()
      expect(await take()).toHaveLength(1)
    })
  })
})
