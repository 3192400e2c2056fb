import type { Hex } from 'viem'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { type BlockRef, notifyChanged, queueSettlement } from './settlements.ts'

/** A settled payment in a block that is not final. */
export type UnfinalizedPayment = BlockRef & { paymentId: string; txHash: Hex }

/** Settled payments in blocks that are not final, the oldest block first. */
export async function findUnfinalized(
  db: Queryable,
  chainId: number,
  limit: number,
): Promise<UnfinalizedPayment[]> {
  const { rows } = await db.query<{
    id: string
    tx_hash: Hex
    block_number: string
    block_hash: Hex
  }>({
    name: 'find-unfinalized',
    text: `select id, tx_hash, block_number, block_hash from payments
           where state = 'settled' and finalized_at is null and chain_id = $1
           order by block_number limit $2`,
    values: [chainId, limit],
  })
  return rows.map((row) => ({
    paymentId: row.id,
    txHash: row.tx_hash,
    blockNumber: BigInt(row.block_number),
    blockHash: row.block_hash,
  }))
}

/** The block of the newest settlement that is not final, or null. */
export async function findNewestSettlement(
  db: Queryable,
  chainId: number,
): Promise<BlockRef | null> {
  const { rows } = await db.query<{ block_number: string; block_hash: Hex }>({
    name: 'find-newest-settlement',
    text: `select block_number, block_hash from payments
           where state = 'settled' and finalized_at is null and chain_id = $1
           order by block_number desc limit 1`,
    values: [chainId],
  })
  const row = rows[0]
  return row === undefined
    ? null
    : { blockNumber: BigInt(row.block_number), blockHash: row.block_hash }
}

/** Marks payments as final. */
export async function recordFinal(db: Queryable, paymentIds: readonly string[]): Promise<void> {
  await db.query(
    `update payments set finalized_at = clock_timestamp()
     where id = any ($1) and state = 'settled' and finalized_at is null`,
    [paymentIds],
  )
}

/** Records new blocks of settled payments: a reorganisation moved their transactions. */
export async function recordMoved(
  db: Queryable,
  moved: readonly UnfinalizedPayment[],
): Promise<void> {
  for (const one of moved) {
    await db.query(
      `update payments set block_number = $3, block_hash = $4
       where id = $1 and tx_hash = $2 and state = 'settled'`,
      [one.paymentId, one.txHash, one.blockNumber, one.blockHash],
    )
  }
}

/**
 * Reverts settlements that a reorganisation undid: the payment is `verified` again, and its signed transaction is
 * rebroadcast unchanged.
 */
export async function recordReorganised(
  pool: Pool,
  undone: readonly UnfinalizedPayment[],
): Promise<void> {
  await transaction(pool, async (db) => {
    for (const { paymentId, txHash } of undone) {
      const { rowCount } = await db.query(
        `update payments set state = 'verified', block_number = null, block_hash = null
         where id = $1 and tx_hash = $2 and state = 'settled' and finalized_at is null`,
        [paymentId, txHash],
      )
      if (rowCount === 0) continue
      await db.query(
        `update chain_transactions set
           state = 'open', succeeded = null, block_number = null, block_hash = null
         where hash = $1`,
        [txHash],
      )
      await queueSettlement(db, paymentId, null)
    }
    await notifyChanged(
      db,
      undone.map((one) => one.paymentId),
    )
  })
}
