/**
 * Requests the automatic transfers out of a purse (a project's wallet). Money above the purse's maximum balance goes to
 * the owner's payout address. Money at a retired address (of an earlier key) goes to the purse's present address.
 */
import { randomBytes } from 'node:crypto'
import { type Address, getAddress } from 'viem'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { addJob } from '../queue/jobs.ts'
import { lockPurse } from './purchases/reserve.ts'
import type { GasLimit } from './purseGas.ts'
import { openSum, storePurseKey } from './purses.ts'
import { cancelOpen, PAYS_OUT } from './stop.ts'
import { chainOf, order } from './transferOut.ts'

/** Sets the time after which a new payout address of the owner becomes valid. */
const PAYOUT_WAIT = '24 hours'
/** Sets the smallest amount of an automatic transfer, 0.01 USDC, because a smaller transfer is not worth its gas. */
const LEAST_ATOMIC = 10_000n

/**
 * Holds the owner's changes to the settings of a purse. An absent setting stays unchanged. The value null removes a
 * setting.
 */
export type PurseLimits = {
  /** Sets the purse balance below which the service records the event purse.low. */
  lowAtomic?: bigint | null
  /**
   * Holds the maximum balance of the purse. Money above it goes to the payout address. The value null removes the
   * maximum.
   */
  maxAtomic?: bigint | null
  payoutAddress?: string | null
}

/**
 * Holds an SQL expression for the present payout address of a purse, whose table alias is `p`. A new payout address
 * becomes valid after its waiting time.
 */
const PAYOUT = `case when p.payout_next_at <= clock_timestamp() then p.payout_next else p.payout_address end`

/**
 * Holds an SQL condition for a purse `p` whose last payout to the present address has failed: it expired unused in the
 * last six hours. For example, USDC refuses a transfer to a blacklisted address, and each try costs gas.
 */
const HAS_FAILED = `exists (
  select from purchases u
  where u.project_id = p.project_id and u.kind = 'sweep' and u.asked_by = '${PAYS_OUT}' and u.pay_to = ${PAYOUT}
    and u.money = 'released' and u.cancel_signature is null and u.created_at > clock_timestamp() - interval '7 hours')`

/**
 * Sets three limits of a purse: the low-balance limit, the maximum balance, and the payout address for money above the
 * maximum. The removal of a payout address takes effect at once. A new payout address becomes valid after 24 hours, and
 * until then the previous one stays valid. If the owner removes the payout address or the maximum balance, the service
 * also cancels payouts that are signed but not yet on the chain.
 * @returns false if the project has no purse.
 */
export function setPurseLimits(
  pool: Pool,
  keyring: Keyring,
  actor: Actor,
  { lowAtomic, maxAtomic, payoutAddress }: PurseLimits,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    if ((await lockPurse(db, actor.projectId)) === null) return false
    if (lowAtomic !== undefined) {
      await setAmount(db, actor, {
        change: 'low_atomic = $2, low_told_at = null',
        action: 'purse.set_low',
        atomic: lowAtomic,
      })
    }
    if (maxAtomic !== undefined) {
      await setAmount(db, actor, {
        change: 'max_atomic = $2',
        action: 'purse.set_max',
        atomic: maxAtomic,
      })
    }
    if (payoutAddress !== undefined) await setAddress(db, actor, payoutAddress)
    if (payoutAddress === null || maxAtomic === null) {
      await cancelOpen(db, keyring, actor.projectId, { kind: 'payouts' })
    }
    return true
  })
}

async function setAmount(
  db: Queryable,
  actor: Actor,
  { change, action, atomic }: { change: string; action: string; atomic: bigint | null },
): Promise<void> {
  const amount = atomic === null ? null : String(atomic)
  await db.query(`update purses set ${change} where project_id = $1`, [actor.projectId, amount])
  await writeAudit(db, actor, { action, subject: null, detail: amount ?? 'none', outcome: 'ok' })
}

async function setAddress(db: Queryable, actor: Actor, address: string | null): Promise<void> {
  await db.query(
    `update purses p set
       payout_address = case when $2::text is null then null else ${PAYOUT} end,
       payout_next = case when $2 = ${PAYOUT} then null else $2 end,
       payout_next_at = case when $2 = ${PAYOUT} or $2 is null then null
         when $2 = p.payout_next then p.payout_next_at
         else clock_timestamp() + interval '${PAYOUT_WAIT}' end
     where p.project_id = $1`,
    [actor.projectId, address],
  )
  const detail = address ?? 'none'
  await writeAudit(db, actor, {
    action: 'purse.set_payout',
    subject: null,
    detail,
    outcome: 'ok',
  })
}

/**
 * Gives a purse a new private key, and moves the money that is not reserved to the address of the new key. The service
 * keeps the old private key, because a seller may still settle a payment that the old key has signed. If money later
 * comes to the address of the old key, the service also moves this money. Only the operator rotates a key, so the
 * transfer ignores the daily gas of the project.
 * @returns null if the project has no purse.
 */
export function rotatePurseKey(
  pool: Pool,
  keyring: Keyring,
  actor: Actor,
): Promise<{ address: Address; movedAtomic: bigint } | null> {
  return transaction(pool, async (db) => {
    const { projectId } = actor
    const purse = await lockPurse(db, projectId)
    if (purse === null) return null
    const privateKey = generatePrivateKey()
    const { address } = privateKeyToAccount(privateKey)
    await storePurseKey(db, keyring, { projectId, privateKey })
    const movedAtomic = await move(db, keyring, actor, {
      from: purse.address,
      to: address,
      amountAtomic: purse.freeAtomic,
      limit: 'exempt',
    })
    await db.query(
      `with old as (
         update purse_keys k set retired_at = clock_timestamp(), balance_atomic = p.balance_atomic,
           balance_block = p.balance_block, balance_at = p.balance_at
         from purses p where p.project_id = $1 and k.address = p.address
       )
       update purses set address = $2, balance_atomic = null, balance_block = null, balance_at = null
       where project_id = $1`,
      [projectId, address.toLowerCase()],
    )
    const subject = address.toLowerCase()
    await writeAudit(db, actor, { action: 'purse.rotate_key', subject, outcome: 'ok' })
    return { address, movedAtomic }
  })
}

/**
 * Requests a transfer out of a purse if the amount is worth the gas, and the gas is within its limit. @returns the amount of the requested transfer, or
 * 0 if the function requested no transfer.
 */
async function move(
  db: Queryable,
  keyring: Keyring,
  actor: Actor,
  {
    from,
    to,
    amountAtomic,
    limit,
  }: { from: string; to: string; amountAtomic: bigint; limit: GasLimit },
): Promise<bigint> {
  const network = await chainOf(db)
  if (network === null || amountAtomic < LEAST_ATOMIC) return 0n
  const key = randomBytes(16).toString('hex')
  const ordered = {
    kind: 'sweep',
    key,
    payTo: getAddress(to),
    amountAtomic,
    refundOf: null,
  } as const
  const id = await order(db, keyring, actor, { ...ordered, address: from, network, limit })
  return id === null ? 0n : amountAtomic
}

const FREE = (alias: string) => `(coalesce(${alias}.balance_atomic, 0) - ${openSum(alias)})`

/**
 * Queues payout jobs for projects with money at a retired address (of an earlier purse key), and for projects with a
 * purse above its maximum balance.
 */
export async function queuePayouts(db: Queryable, addresses: readonly string[]): Promise<void> {
  const { rows } = await db.query<{ project_id: string }>({
    name: 'find-payouts',
    text: `
      select p.project_id from purses p
      where p.address = any ($1) and p.frozen_at is null and p.max_atomic is not null and ${PAYOUT} is not null
        and ${FREE('p')} >= p.max_atomic + ${LEAST_ATOMIC} and not ${HAS_FAILED}
      union
      select k.project_id from purse_keys k join purses p using (project_id)
      where k.address = any ($1) and k.retired_at is not null and p.frozen_at is null and ${FREE('k')} >= ${LEAST_ATOMIC}`,
    values: [addresses],
  })
  for (const { project_id: projectId } of rows) {
    await addJob(db, {
      task: 'pay_out',
      payload: { projectId },
      key: `pay_out:${projectId}`,
    })
  }
}

/**
 * Requests the automatic transfers out of a purse. A second call requests no further transfer, because the money of a
 * requested transfer is no longer available. A purse that has used up its gas of the day also requests no transfer.
 * Each later reading of its balance queues the payout again, so that the payout takes place on the next day.
 * @param given.deniedPayees holds the addresses that no purse pays, in lower case.
 */
export function payOut(
  pool: Pool,
  keyring: Keyring,
  {
    projectId,
    deniedPayees,
    dailyGas,
  }: { projectId: string; deniedPayees: ReadonlySet<string>; dailyGas: number | null },
): Promise<void> {
  return transaction(pool, async (db) => {
    const purse = await lockPurse(db, projectId)
    if (purse === null || purse.isFrozen) return
    const actor = { projectId, keyPrefix: PAYS_OUT, requestId: `pay_out:${projectId}` }
    const limit = { dailyGas }
    const retired = await db.query<{ address: string; free: string }>(
      `select k.address, ${FREE('k')} as free from purse_keys k
       where k.project_id = $1 and k.retired_at is not null order by k.address`,
      [projectId],
    )
    for (const { address, free } of retired.rows) {
      const amountAtomic = BigInt(free)
      await move(db, keyring, actor, { from: address, to: purse.address, amountAtomic, limit })
    }
    const { rows } = await db.query<{ max: string | null; payout: string | null }>(
      `select p.max_atomic as max, ${PAYOUT} as payout from purses p
       where p.project_id = $1 and not ${HAS_FAILED}`,
      [projectId],
    )
    const { max, payout } = rows[0] ?? { max: null, payout: null }
    if (max === null || payout === null || deniedPayees.has(payout)) return
    const amountAtomic = purse.freeAtomic - BigInt(max)
    await move(db, keyring, actor, { from: purse.address, to: payout, amountAtomic, limit })
  })
}
