import type { Address, Hex } from 'viem'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { queueSettlement } from '../settle/settlementQueue.ts'
import { type BlockRef, blockRefOf, notifyChanged } from '../settle/settlements.ts'

/** Describes a settled payment in a block that is not final yet. */
export type UnfinalizedPayment = SettledBy &
  BlockRef & { transfer: Omit<Transfer, 'signature' | 'deployment'> }

/** Describes a settled payment with the transaction that settled it. */
type SettledBy = { paymentId: string; txHash: Hex }

/**
 * Finds settled payments that are not known to be final, the oldest block first.
 * @param after is the last payment of the previous part. Null means that the function starts with the oldest block.
 */
export async function findUnfinalized(
  db: Queryable,
  chainId: number,
  limit: number,
  after: Pick<UnfinalizedPayment, 'blockNumber' | 'paymentId'> | null = null,
): Promise<UnfinalizedPayment[]> {
  const { rows } = await db.query<{
    id: string
    tx_hash: Hex
    block_number: string
    block_hash: Hex
    asset: Address
    payer: Address
    recipient: Address
    amount_atomic: string
    valid_after: string
    valid_before: string
    authorization_nonce: Hex
  }>({
    name: 'find-unfinalized',
    text: `select id, tx_hash, block_number, block_hash, asset, payer, recipient, amount_atomic, valid_after, valid_before,
             authorization_nonce
           from payments
           where state = 'settled' and finalized_at is null and chain_id = $1
             and (block_number, id) > ($3::bigint, $4::text)
           order by block_number, id limit $2`,
    values: [chainId, limit, after?.blockNumber ?? -1n, after?.paymentId ?? ''],
  })
  return rows.map((row) => ({
    paymentId: row.id,
    txHash: row.tx_hash,
    blockNumber: BigInt(row.block_number),
    blockHash: row.block_hash,
    transfer: {
      asset: row.asset,
      payer: row.payer,
      recipient: row.recipient,
      amountAtomic: BigInt(row.amount_atomic),
      validAfter: BigInt(row.valid_after),
      validBefore: BigInt(row.valid_before),
      nonce: row.authorization_nonce,
    },
  }))
}

/** Limits how many of the newest settlements the search for their blocks reads. */
const NEWEST_MAX = 1_000

/** Returns the newest blocks with settlements that are not known to be final, the newest block first. */
export async function findSettlementBlocks(
  db: Queryable,
  chainId: number,
  limit: number,
): Promise<BlockRef[]> {
  const { rows } = await db.query<{ block_number: string; block_hash: Hex }>({
    name: 'find-settlement-blocks',
    text: `select distinct block_number, block_hash from (
             select block_number, block_hash from payments
             where state = 'settled' and finalized_at is null and chain_id = $1
             order by block_number desc limit ${NEWEST_MAX}) newest
           order by block_number desc limit $2`,
    values: [chainId, limit],
  })
  return rows.map(blockRefOf)
}

/** Marks settled payments as final, because their blocks are final. */
export async function recordFinal(db: Queryable, paymentIds: readonly string[]): Promise<void> {
  await db.query(
    `update payments set finalized_at = clock_timestamp()
     where id = any ($1) and state = 'settled' and finalized_at is null`,
    [paymentIds],
  )
}

/**
 * Describes a settled payment in a new block, after a reorganisation moved the payment's transaction to the new block.
 */
export type MovedPayment = SettledBy & BlockRef & { logIndex: number }

/** Records the new blocks of settled payments after a reorganisation moved their transactions. */
export async function recordMoved(db: Queryable, moved: readonly MovedPayment[]): Promise<void> {
  if (moved.length === 0) return
  await db.query(
    `update payments p set block_number = m.number, block_hash = m.hash, log_index = m.log
     from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::int[]) m (id, tx, number, hash, log)
     where p.id = m.id and p.tx_hash = m.tx and p.state = 'settled'`,
    [
      moved.map((one) => one.paymentId),
      moved.map((one) => one.txHash),
      moved.map((one) => one.blockNumber),
      moved.map((one) => one.blockHash),
      moved.map((one) => one.logIndex),
    ],
  )
}

/**
 * Undoes settlements after a reorganisation removed their blocks. Each payment becomes `verified` again, and the
 * service sends its signed transaction again unchanged.
 */
export async function recordReorganised(pool: Pool, undone: readonly SettledBy[]): Promise<void> {
  await transaction(pool, async (db) => {
    const { rows } = await db.query<{ id: string; tx: Hex }>(
      `with due as (
         select p.id, u.tx from payments p
         join unnest($1::text[], $2::text[]) u (id, tx) on u.id = p.id and u.tx = p.tx_hash
         where p.state = 'settled' and p.finalized_at is null
         order by p.id for no key update of p)
       update payments p set state = 'verified', block_number = null, block_hash = null, log_index = null
       from due where p.id = due.id returning p.id, due.tx`,
      [undone.map((one) => one.paymentId), undone.map((one) => one.txHash)],
    )
    await db.query(
      `with due as (select hash from chain_transactions where hash = any ($1) order by hash for no key update)
       update chain_transactions t set state = 'open', succeeded = null, block_number = null, block_hash = null
       from due where t.hash = due.hash`,
      [[...new Set(rows.map((row) => row.tx))]],
    )
    for (const { id } of rows) await queueSettlement(db, id, null)
    await notifyChanged(
      db,
      undone.map((one) => one.paymentId),
    )
  })
}
