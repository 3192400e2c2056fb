import type { Hex } from 'viem'
import type { X402Reason } from '../../../shared/till/x402.ts'
import type { Pool, Queryable } from '../../db.ts'
import { failPayment } from './settlements.ts'

/** Sets how long a contract wallet must wait after a payment of the wallet has reverted on the chain. */
const WAIT = "interval '6 hours'"

/** Describes a payer's address with the hash of the contract code at this address. */
export type PayerCode = { payer: string; code: Hex | null }

/**
 * Tells for each payer, in the given order, whether it must wait because an earlier payment has reverted on the chain.
 * All wallets with the code of a suspended wallet must wait, unless wallets at two addresses have already paid with
 * this code. Without this exception, the owner of one proxy contract could stop all wallets of the same product.
 */
export async function findSuspended(
  db: Queryable,
  chainId: number,
  payers: readonly PayerCode[],
): Promise<boolean[]> {
  if (payers.length === 0) return []
  const { rows } = await db.query<{ n: number }>({
    name: 'find-suspended',
    text: `
      select w.n::int from unnest($2::text[], $3::text[]) with ordinality w (payer, code, n)
      where exists (
        select from wallet_suspensions s
        where s.chain_id = $1 and s.payer = lower(w.payer) and s.suspended_at > clock_timestamp() - ${WAIT}
      ) or exists (
        select from wallet_suspensions s
        where s.chain_id = $1 and s.payer_code = w.code and s.suspended_at > clock_timestamp() - ${WAIT}
          and not exists (
            select from wallet_codes c where c.chain_id = $1 and c.code = w.code and c.is_shared))`,
    values: [chainId, payers.map((one) => one.payer), payers.map((one) => one.code)],
  })
  const found = new Set(rows.map((row) => row.n))
  return payers.map((_, n) => found.has(n + 1))
}

/**
 * Returns two sets of the given wallet codes: the codes that have never paid, and those of them that have an open
 * transaction now.
 */
export async function findUnprovenUnderWay(
  db: Queryable,
  chainId: number,
  codes: readonly Hex[],
): Promise<{ unproven: Set<Hex>; underWay: Set<Hex> }> {
  const { rows } = await db.query<{ code: Hex; under_way: boolean }>({
    name: 'find-unproven-under-way',
    text: `select w.code, exists (
             select from chain_transactions t
             where t.chain_id = $1 and t.state = 'open' and t.payer_code = w.code) as under_way
           from unnest($2::text[]) w (code)
           where not exists (select from wallet_codes c where c.chain_id = $1 and c.code = w.code)`,
    values: [chainId, codes],
  })
  return {
    unproven: new Set(rows.map((row) => row.code)),
    underWay: new Set(rows.flatMap((row) => (row.under_way ? [row.code] : []))),
  }
}

/**
 * Returns the payments whose transactions reverted on the chain. Each of them has the code hash of its contract wallet,
 * and the number of the newest block with such a transaction.
 */
export async function findRevertedCodes(
  db: Queryable,
  paymentIds: readonly string[],
): Promise<Map<string, { code: Hex; block: bigint }>> {
  const { rows } = await db.query<{ payment_id: string; payer_code: Hex; block_number: string }>({
    name: 'find-reverted-codes',
    text: `select payment_id, payer_code, block_number from chain_transactions
           where payment_id = any ($1) and state = 'mined' and not succeeded and payer_code is not null
           order by block_number`,
    values: [paymentIds],
  })
  return new Map(
    rows.map((row) => [row.payment_id, { code: row.payer_code, block: BigInt(row.block_number) }]),
  )
}

/** Ends a payment that its contract wallet reverted on the chain, and suspends the contract wallet. */
export function failAndSuspend(
  pool: Pool,
  revert: {
    paymentId: string
    chainId: number
    payer: string
    code: Hex
    reason: X402Reason
    detail: string
  },
): Promise<void> {
  const { paymentId, chainId, payer, code, reason, detail } = revert
  return failPayment(pool, { paymentId, stage: 'settle', reason, detail }, async (db) => {
    await db.query(
      `insert into wallet_suspensions (chain_id, payer, payer_code, payment_id)
       values ($1, lower($2), $3, $4)
       on conflict (chain_id, payer) do update set
         payer_code = excluded.payer_code, payment_id = excluded.payment_id, suspended_at = clock_timestamp()`,
      [chainId, payer, code, paymentId],
    )
  })
}

/** Deletes the suspensions of contract wallets after their waiting time. */
export async function deleteEndedSuspensions(db: Queryable): Promise<void> {
  await db.query(`delete from wallet_suspensions where suspended_at < clock_timestamp() - ${WAIT}`)
}
