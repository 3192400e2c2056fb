/** Tests the limits of a purse (a project's wallet), and when the money above its maximum balance is paid out. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import type { Address } from 'viem'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import {
  type PurseLimits,
  payOut,
  queuePayouts,
  rotatePurseKey,
  setPurseLimits,
} from '../../../sql/purse/payout.ts'
import { countPurseGas } from '../../../sql/purse/purseGas.ts'
import { stopPurse, takeCancellations } from '../../../sql/purse/stop.ts'
import { sweepPurse, takeTransfers } from '../../../sql/purse/transferOut.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { BALANCE, newKeyring, newPurse, ownerOf } from '../../support/purse/purseRows.ts'
import { dropJobs, newProject } from '../../support/till/tillRows.ts'

const ONE = `0x${'a1'.repeat(20)}`
const OTHER = `0x${'b2'.repeat(20)}`
const LEAST = 10_000n
const NONE: ReadonlySet<string> = new Set()
const HEAD = {
  chainId: 84532,
  network: 'base-sepolia',
  number: 7n,
  hash: `0x${'07'.repeat(32)}`,
} as const

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Keyring
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

const set = (projectId: string, limits: PurseLimits) =>
  setPurseLimits(pool, keyring, ownerOf(projectId), limits)

async function stored(projectId: string) {
  const { rows } = await pool.query(
    `select address, low_atomic::text as low, max_atomic::text as max, payout_address as payout, payout_next as next,
       extract(epoch from payout_next_at - clock_timestamp()) / 3600 as hours
     from purses where project_id = $1`,
    [projectId],
  )
  return rows[0]
}
/** Ends the waiting time of a new payout address. */
const endWait = (projectId: string) =>
  pool.query(
    // The column `payout_next_at` rounds to milliseconds. A stored present time may therefore lie slightly in the
    // future, so the test stores the time of one second ago.
    `update purses set payout_next_at = clock_timestamp() - interval '1 second' where project_id = $1`,
    [projectId],
  )

describe('an owner can set and remove the limits of an existing purse (wallet)', () => {
  test('the limits of a purse (the agent’s wallet) cannot be set if the project has no purse', async () => {
    expect(await set(await newProject(pool), { maxAtomic: 1n })).toBe(false)
  })

  test('a limit of a purse (wallet) changes only if the request gives it, and null removes the limit', async () => {
    const { projectId } = await newPurse(pool, keyring)
    expect(await set(projectId, { lowAtomic: 5n, maxAtomic: 9n })).toBe(true)
    expect(await stored(projectId)).toMatchObject({ low: '5', max: '9', payout: null })
    await set(projectId, { lowAtomic: null })
    expect(await stored(projectId)).toMatchObject({ low: null, max: '9' })
    await set(projectId, {})
    expect(await stored(projectId)).toMatchObject({ low: null, max: '9' })
    await set(projectId, { maxAtomic: null })
    expect((await stored(projectId)).max).toBeNull()
  })

  test('the audit log records each change of a purse’s limits with the new value', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { lowAtomic: 5n, maxAtomic: null, payoutAddress: ONE })
    await set(projectId, { payoutAddress: null })
    const { rows } = await pool.query(
      `select action || ' ' || detail as line from audit_log
       where project_id = $1 and action like 'purse.set_%' order by "row"`,
      [projectId],
    )
    expect(rows.map(({ line }) => line)).toEqual([
      'purse.set_low 5',
      'purse.set_max none',
      `purse.set_payout ${ONE}`,
      'purse.set_payout none',
    ])
  })
})

describe('a new payout address becomes valid after 24 hours, and its removal takes effect at once', () => {
  test('a new payout address of a purse (wallet) waits 24 hours, and the earlier address stays valid until then', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { payoutAddress: ONE })
    const first = await stored(projectId)
    expect(first).toMatchObject({ payout: null, next: ONE })
    expect(Number(first.hours)).toBeCloseTo(24, 1)
    await endWait(projectId)
    await set(projectId, { payoutAddress: OTHER })
    expect(await stored(projectId)).toMatchObject({ payout: ONE, next: OTHER })
  })

  test('setting the valid payout address again needs no wait, and ends the wait of another address', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { payoutAddress: ONE })
    await endWait(projectId)
    await set(projectId, { payoutAddress: OTHER })
    await set(projectId, { payoutAddress: ONE })
    expect(await stored(projectId)).toMatchObject({ payout: ONE, next: null, hours: null })
  })

  test('if a waiting payout address is set again, its wait does not become longer', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { payoutAddress: ONE })
    await pool.query(
      `update purses set payout_next_at = payout_next_at - interval '20 hours' where project_id = $1`,
      [projectId],
    )
    await set(projectId, { payoutAddress: ONE })
    const again = await stored(projectId)
    expect(again).toMatchObject({ payout: null, next: ONE })
    expect(Number(again.hours)).toBeCloseTo(4, 1)
  })

  test('the removal of a payout address takes effect at once, and also removes an address that still waits', async () => {
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { payoutAddress: ONE })
    await endWait(projectId)
    await set(projectId, { payoutAddress: OTHER })
    await set(projectId, { payoutAddress: null })
    expect(await stored(projectId)).toMatchObject({ payout: null, next: null, hours: null })
  })
})

describe('a signed payout is still sent until it is on the chain, unless the owner removes the payout address or the maximum balance', () => {
  /** Lists the receivers of the transfers that the service would send now, and counts the cancellations. */
  async function sent(): Promise<[to: string[], cancellations: number]> {
    await pool.query('update purchases set transfer_sent_at = null, cancel_sent_at = null')
    const out = await takeTransfers(pool, HEAD.network, 100)
    const cancellations = await takeCancellations(pool, HEAD.network, 100)
    return [out.map(({ recipient }) => recipient), cancellations.length]
  }
  beforeEach(async () => {
    await pool.query(`update purchases set money = 'released' where money = 'open'`)
    await recordHead(pool, HEAD)
  })

  test.each<[string, PurseLimits]>([
    ['the payout address', { payoutAddress: null }],
    ['the maximum balance', { maxAtomic: null }],
  ])('a signed payout is cancelled if the owner removes %s', async (_, change) => {
    const projectId = await full(LEAST)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    expect(await sent()).toEqual([[ONE], 0])
    await set(projectId, change)
    expect(await sent()).toEqual([[], 1])
  })

  test('a signed payout is still sent to the old address after the owner sets another payout address or another maximum balance', async () => {
    const projectId = await full(LEAST)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    await set(projectId, { payoutAddress: OTHER, maxAtomic: BALANCE, lowAtomic: null })
    expect(await sent()).toEqual([[ONE], 0])
  })

  test('the removal of the payout address cancels the signed payout and no other payment', async () => {
    const purse = await newPurse(pool, keyring)
    const { projectId } = purse
    await purse.reserve([await purse.wanted(1n)])
    await sweepPurse(pool, keyring, ownerOf(projectId), OTHER as Address)
    await rotatePurseKey(pool, keyring, ownerOf(projectId))
    await pool.query(
      `update purse_keys set balance_atomic = 10 * balance_atomic where retired_at is not null and project_id = $1`,
      [projectId],
    )
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    const { address } = await stored(projectId)
    const [to] = await sent()
    expect(to.toSorted()).toEqual([OTHER, address].toSorted())
    await set(projectId, { payoutAddress: null })
    expect(await sent()).toEqual([expect.any(Array), 0])
  })
})

/** Makes a purse (a wallet) with a valid payout address. Its balance exceeds the maximum by `above`. */
async function full(above: bigint, { address = ONE as string | null } = {}) {
  const { projectId } = await newPurse(pool, keyring)
  await set(projectId, { maxAtomic: BALANCE - above, payoutAddress: address })
  if (address !== null) await endWait(projectId)
  return projectId
}

/** Tells whether a payout of the project is queued. */
async function isQueued(projectId: string, addresses?: string[]): Promise<boolean> {
  await queuePayouts(pool, addresses ?? [(await stored(projectId)).address])
  const { rowCount } = await pool.query('select from graphile_worker.jobs where key = $1', [
    `pay_out:${projectId}`,
  ])
  await dropJobs(pool)
  return rowCount === 1
}

describe('a payout is queued only if the purse (wallet) has money above its maximum and a valid payout address', () => {
  test('a payout is queued if the purse (wallet) has at least 0.01 USDC above its maximum', async () => {
    expect(await isQueued(await full(LEAST))).toBe(true)
    expect(await isQueued(await full(LEAST - 1n))).toBe(false)
  })

  test('no payout is queued without a payout address, or while the payout address waits', async () => {
    expect(await isQueued(await full(LEAST, { address: null }))).toBe(false)
    const { projectId } = await newPurse(pool, keyring)
    await set(projectId, { maxAtomic: 0n, payoutAddress: ONE })
    expect(await isQueued(projectId)).toBe(false)
  })

  test('no payout is queued if the purse (wallet) has no maximum', async () => {
    const projectId = await full(LEAST)
    await set(projectId, { maxAtomic: null })
    expect(await isQueued(projectId)).toBe(false)
  })

  test('no payout is queued for a stopped purse (wallet), or for a purse whose address the caller did not name', async () => {
    const projectId = await full(LEAST)
    expect(await isQueued(projectId, [OTHER])).toBe(false)
    await stopPurse(pool, keyring, ownerOf(projectId))
    expect(await isQueued(projectId)).toBe(false)
  })

  test('a payout leaves the money for open payments in the purse (wallet)', async () => {
    const purse = await newPurse(pool, keyring)
    await set(purse.projectId, { maxAtomic: BALANCE - LEAST, payoutAddress: ONE })
    await endWait(purse.projectId)
    expect(await isQueued(purse.projectId)).toBe(true)
    await purse.reserve([await purse.wanted(1n)])
    expect(await isQueued(purse.projectId)).toBe(false)
  })
})

/** Lists the transfers out of a project's purse (wallet) with their amounts and receivers. */
async function transfers(projectId: string): Promise<[amount: string, to: string][]> {
  const { rows } = await pool.query(
    `select amount_atomic::text as amount, lower(pay_to) as to_address from purchases
     where project_id = $1 and kind = 'sweep' order by row`,
    [projectId],
  )
  return rows.map(({ amount, to_address: to }) => [amount, to])
}

describe('a payout transfers the money above the maximum of a purse (wallet) once, and waits if the chain or the day’s gas limit demands this', () => {
  test('a payout makes no transfer until the service knows the newest block of the chain', async () => {
    await pool.query('delete from chain_status')
    const projectId = await full(LEAST)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    expect(await transfers(projectId)).toEqual([])
    await recordHead(pool, HEAD)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    expect(await transfers(projectId)).toEqual([[String(LEAST), ONE]])
  })

  test('a payout transfers the money above the maximum only once', async () => {
    await recordHead(pool, HEAD)
    const projectId = await full(LEAST + 5n)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    expect(await transfers(projectId)).toEqual([[String(LEAST + 5n), ONE]])
  })

  test('after a payout expired unused, the next payout to the same address waits six hours', async () => {
    await recordHead(pool, HEAD)
    const projectId = await full(LEAST)
    const again = () => payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    await again()
    // A payout expires one hour after its creation. To expire the given number of hours ago, it must be created one
    // hour earlier than that.
    const expiredBefore = (hours: number) =>
      pool.query(
        `update purchases set money = 'released', created_at = clock_timestamp() - make_interval(hours => $2 + 1)
         where project_id = $1`,
        [projectId, hours],
      )
    await expiredBefore(5)
    await again()
    expect(await transfers(projectId)).toHaveLength(1)
    expect(await isQueued(projectId)).toBe(false)
    await expiredBefore(6)
    expect(await isQueued(projectId)).toBe(true)
    await again()
    expect(await transfers(projectId)).toHaveLength(2)
  })

  test('a failed payout does not delay a payout to another address', async () => {
    await recordHead(pool, HEAD)
    const projectId = await full(LEAST)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    await pool.query(`update purchases set money = 'released' where project_id = $1`, [projectId])
    await set(projectId, { payoutAddress: OTHER })
    await endWait(projectId)
    await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
    expect(await transfers(projectId)).toEqual([
      [String(LEAST), ONE],
      [String(LEAST), OTHER],
    ])
  })

  test('no payout goes to an address that the operator has forbidden after the owner named it', async () => {
    await recordHead(pool, HEAD)
    const projectId = await full(LEAST)
    await payOut(pool, keyring, { projectId, deniedPayees: new Set([ONE]), dailyGas: null })
    expect(await transfers(projectId)).toEqual([])
  })

  test('a payout waits for the next day if the purse (wallet) has used up its gas of the day', async () => {
    await recordHead(pool, HEAD)
    const projectId = await full(LEAST)
    const paid = async (dailyGas: number | null) => {
      await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas })
      return (await transfers(projectId)).length
    }
    await countPurseGas(pool, projectId, 2)
    expect(await paid(160_000)).toBe(0)
    expect(await isQueued(projectId)).toBe(true)
    await pool.query('update purse_gas set day = day - 1 where project_id = $1', [projectId])
    expect(await paid(160_000)).toBe(1)
  })

  test('no payout happens if it would be less than 0.01 USDC, or if the purse (wallet) has no maximum, has no payout address, or is stopped', async () => {
    await recordHead(pool, HEAD)
    const endless = await full(LEAST)
    await set(endless, { maxAtomic: null })
    const stopped = await full(LEAST)
    await stopPurse(pool, keyring, ownerOf(stopped))
    for (const projectId of [
      await full(LEAST - 1n),
      endless,
      await full(LEAST, { address: null }),
      stopped,
      await newProject(pool),
    ]) {
      await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas: null })
      expect(await transfers(projectId)).toEqual([])
    }
  })
})

describe('after a purse (wallet) gets a new key, its money moves from the old address to the new address', () => {
  test('a key change moves the money of a purse (wallet) even if the project has used up its gas of the day', async () => {
    await recordHead(pool, HEAD)
    const { projectId } = await newPurse(pool, keyring)
    await pool.query('insert into project_limits (project_id, daily_gas) values ($1, 0)', [
      projectId,
    ])
    await countPurseGas(pool, projectId, 1)
    const rotated = await rotatePurseKey(pool, keyring, ownerOf(projectId))
    expect(rotated?.movedAtomic).toBe(BALANCE)
    const swept = await sweepPurse(pool, keyring, ownerOf(projectId), OTHER as Address)
    expect(swept.kind).toBe('nothing_free')
  })

  test('after a key change, the old address of a purse (wallet) sends no second transfer until the next day if the gas is used up', async () => {
    await recordHead(pool, HEAD)
    const { projectId } = await newPurse(pool, keyring)
    await rotatePurseKey(pool, keyring, ownerOf(projectId))
    await pool.query(
      'update purse_keys set balance_atomic = balance_atomic + 50000 where project_id = $1 and retired_at is not null',
      [projectId],
    )
    const moved = async (dailyGas: number | null) => {
      await payOut(pool, keyring, { projectId, deniedPayees: NONE, dailyGas })
      return (await transfers(projectId)).length
    }
    expect(await moved(80_000)).toBe(1)
    expect(await moved(80_001)).toBe(2)
  })

  test('only an existing purse (wallet) can get a new key', async () => {
    expect(await rotatePurseKey(pool, keyring, ownerOf(await newProject(pool)))).toBeNull()
  })

  test('after a key change, a purse’s new address gets the unreserved money of the old address, and the money for open payments stays at the old address', async () => {
    await recordHead(pool, HEAD)
    const purse = await newPurse(pool, keyring)
    await purse.reserve([await purse.wanted(1_000n)])
    const before = await stored(purse.projectId)
    const rotated = await rotatePurseKey(pool, keyring, ownerOf(purse.projectId))
    const after = await stored(purse.projectId)
    expect(after.address).toBe(rotated!.address.toLowerCase())
    expect(after.address).not.toBe(before.address)
    expect(rotated!.movedAtomic).toBe(BALANCE - 1_000n)
    expect(await transfers(purse.projectId)).toEqual([[String(BALANCE - 1_000n), after.address]])
  })
})
