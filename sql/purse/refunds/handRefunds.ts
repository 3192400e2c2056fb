/** Records what the chain shows about refunds that sellers sent by hand. */
import type { Address, Hex } from 'viem'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { type BlockRef, blockRefOf } from '../../till/settle/settlements.ts'
import type { TransferPart } from '../watch.ts'
import { readRefundFacts, type SignRefund, tellRefund } from './refundFacts.ts'

/** Describes a refund that a seller sent by hand. The seller has named the transaction of the refund. */
export type ClaimedRefund = {
  row: bigint
  id: string
  asset: Address
  payer: Address
  payTo: Address
  amountAtomic: bigint
  txHash: Hex
  /**
   * Holds the number of the block that contains the refunded payment. A refund cannot be in an earlier block than the
   * payment.
   */
  paidBlock: bigint
  /** Tells whether the seller named the transaction so long ago that a chain node must know it by now. */
  isOld: boolean
}

const OLD = '1 hour'

type Row = {
  row: string
  id: string
  asset: Address
  payer: Address
  pay_to: Address
  amount_atomic: string
  tx_hash: Hex
  paid_block: string
  is_old: boolean
}

/**
 * Lists the refunds whose transaction a seller named and a worker must still check. Each poll of the chain reads one
 * part of the list. Therefore transactions that no chain node knows do not delay the other refunds.
 * @param after is the row number of the last refund that the previous poll read. The number 0 starts the list at the
 *   first refund.
 */
export async function findClaimed(
  db: Queryable,
  network: string,
  { after, limit }: { after: bigint; limit: number },
): Promise<ClaimedRefund[]> {
  const { rows } = await db.query<Row>({
    name: 'find-claimed-refunds',
    text: `select r.row, r.id, r.asset, r.payer, r.pay_to, r.amount_atomic, r.tx_hash, p.block_number as paid_block,
             r.claimed_at < clock_timestamp() - interval '${OLD}' as is_old
           from hand_refunds r join payments p on p.id = r.payment_id
           where r.state = 'claimed' and r.network = $1 and r.row > $2 order by r.row limit $3`,
    values: [network, after, limit],
  })
  return rows.map((row) => ({
    row: BigInt(row.row),
    id: row.id,
    asset: row.asset,
    payer: row.payer,
    payTo: row.pay_to,
    amountAtomic: BigInt(row.amount_atomic),
    txHash: row.tx_hash,
    paidBlock: BigInt(row.paid_block),
    isOld: row.is_old,
  }))
}

/**
 * Records the reason why the transaction that a seller named does not count as the refund. The seller must then send
 * the refund again.
 */
export async function refuseClaim(
  db: Queryable,
  { id, txHash }: Pick<ClaimedRefund, 'id' | 'txHash'>,
  reason: string,
): Promise<void> {
  await db.query(
    `update hand_refunds set state = 'expected', tx_hash = null, reason = $3
     where id = $1 and state = 'claimed' and tx_hash = $2`,
    [id, txHash, reason],
  )
}

/**
 * Finds the log indexes in the transaction $2 whose transfers cannot count for the refund $1. A transfer that pays for
 * a sale or a purchase of this service is no refund, even if it goes from the seller to the buyer.
 */
const USED_LOGS = `
  select o.log_index from hand_refunds o where o.tx_hash = $2 and o.log_index is not null
  union all
  select q.log_index from hand_refunds r join payments p on p.id = r.payment_id
  join payments q on q.chain_id = p.chain_id and q.asset = p.asset and lower(q.payer) = r.payer
  where r.id = $1 and q.tx_hash = $2 and q.log_index is not null
  union all
  select u.log_index from hand_refunds r join purchases u on u.payer = r.payer and u.kind in ('payment', 'refund')
  where r.id = $1 and u.tx_hash = $2 and u.log_index is not null`

/**
 * Returns the log indexes of those Transfer events of a transaction that already count for other refunds, sales or
 * purchases.
 */
export async function usedLogs(
  db: Queryable,
  { id, txHash }: Pick<ClaimedRefund, 'id' | 'txHash'>,
): Promise<number[]> {
  const { rows } = await db.query<{ log_index: number }>(USED_LOGS, [id, txHash])
  return rows.map(({ log_index: index }) => index)
}

/**
 * Returns those given nonces whose authorizations pay for sales or purchases of this service. The check by nonce is
 * needed, because the service knows the authorization of a sale before it records the transfer.
 */
export async function soldNonces(
  db: Queryable,
  { id }: Pick<ClaimedRefund, 'id'>,
  nonces: readonly Hex[],
): Promise<Set<Hex>> {
  const { rows } = await db.query<{ nonce: Hex }>(
    `select q.authorization_nonce as nonce from hand_refunds r join payments p on p.id = r.payment_id
     join payments q on q.chain_id = p.chain_id and q.asset = p.asset and lower(q.payer) = r.payer
     where r.id = $1 and q.authorization_nonce = any ($2) and q.state <> 'failed'
     union all
     select u.nonce from hand_refunds r join purchases u on u.payer = r.payer and u.kind in ('payment', 'refund')
     where r.id = $1 and u.nonce = any ($2)`,
    [id, nonces],
  )
  return new Set(rows.map(({ nonce }) => nonce))
}

/**
 * Records the transfer of a refund that a seller sent by hand, together with its receipt. For a new transfer, the
 * function also records a webhook event. @returns false if the transfer already counts for another refund, a sale or a
 * purchase.
 */
export function recordHandRefund(
  pool: Pool,
  { id, txHash }: Pick<ClaimedRefund, 'id' | 'txHash'>,
  seen: { logIndex: number; blockNumber: bigint; blockHash: Hex },
  sign: SignRefund,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{
      payment_id: string
      amount_atomic: string
      payer: string
      pay_to: string
      told: boolean
    }>(
      `select payment_id, amount_atomic, payer, pay_to, told_at is not null as told from hand_refunds
       where id = $1 and state = 'claimed' and tx_hash = $2
         and $3 <> all (array(${USED_LOGS}))
       for no key update`,
      [id, txHash, seen.logIndex],
    )
    const row = rows[0]
    if (row === undefined) return false
    const facts = await readRefundFacts(db, {
      id,
      refundOf: row.payment_id,
      amountAtomic: BigInt(row.amount_atomic),
      payer: row.payer,
      payTo: row.pay_to,
    })
    await db.query(
      `update hand_refunds set state = 'spent', log_index = $2, block_number = $3, block_hash = $4,
         spent_at = clock_timestamp(), told_at = coalesce(told_at, clock_timestamp()), receipt = $5 where id = $1`,
      [id, seen.logIndex, seen.blockNumber, seen.blockHash, sign(facts, txHash)],
    )
    if (!row.told) await tellRefund(db, facts, txHash)
    return true
  })
}

/** Lists the refunds sent by hand in blocks up to a given number, except refunds with a known final block. */
export async function findUnfinalRefunds(
  db: Queryable,
  network: string,
  { upTo, limit, first }: TransferPart,
): Promise<(BlockRef & { id: string; txHash: Hex })[]> {
  const { rows } = await db.query<{
    id: string
    tx_hash: Hex
    block_number: string
    block_hash: Hex
  }>({
    name: `find-${first}-unfinal-refunds`,
    text: `select id, tx_hash, block_number, block_hash from hand_refunds
           where state = 'spent' and final_at is null and network = $1 and block_number <= $2
           order by block_number ${first === 'newest' ? 'desc' : ''} limit $3`,
    values: [network, upTo, limit],
  })
  return rows.map((row) => ({
    id: row.id,
    txHash: row.tx_hash,
    ...blockRefOf(row),
  }))
}

/** Records that refunds sent by hand are in final blocks. */
export async function recordFinalRefunds(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.query(
    `update hand_refunds set final_at = clock_timestamp() where id = any ($1) and state = 'spent'`,
    [ids],
  )
}

/**
 * Records that a reorganisation replaced the blocks of refunds that were sent by hand. A worker process then checks
 * their transactions again.
 */
export async function checkAnew(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.query(
    `update hand_refunds set state = 'claimed', claimed_at = clock_timestamp(), log_index = null, block_number = null,
       block_hash = null, spent_at = null
     where id = any ($1) and state = 'spent' and final_at is null`,
    [ids],
  )
}
