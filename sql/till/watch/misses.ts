import type { Hex } from 'viem'
import { type Pool, transaction } from '../../db.ts'
import { queueSettlement, sendAlone } from '../settle/settlementQueue.ts'
import { lockTransactions, type MinedTransaction, markMined } from '../settle/settlements.ts'

/**
 * Records transactions that reverted or were displaced, and queues their payments again. If a group transaction (for
 * several payments) reverted, each of its payments gets its own transaction. This revert does not count as a revert of
 * the single payments.
 * @param displaced lists the hashes of transactions that can never be mined, because other transactions used their
 * nonces.
 */
export async function recordMisses(
  pool: Pool,
  { reverted, displaced }: { reverted: readonly MinedTransaction[]; displaced: readonly Hex[] },
): Promise<void> {
  if (reverted.length === 0 && displaced.length === 0) return
  await transaction(pool, async (db) => {
    const hashes = [...reverted.map((one) => one.hash), ...displaced]
    await lockTransactions(db, hashes)
    const { rows } = await db.query<{ payment_id: string; hash: Hex; is_member: boolean }>(
      `select m.payment_id, t.hash, t.payment_id is null as is_member
       from chain_transactions t join transaction_payments m on m.hash = t.hash
       where t.hash = any ($1) and t.state = 'open' order by m.payment_id`,
      [hashes],
    )
    await markMined(db, reverted)
    await db.query(
      `update chain_transactions set state = 'void' where hash = any ($1) and state = 'open'`,
      [displaced],
    )
    const isReverted = new Set(reverted.map((one) => one.hash))
    const idsOf = (wanted: (row: (typeof rows)[number]) => boolean) => [
      ...new Set(rows.filter(wanted).map((row) => row.payment_id)),
    ]
    const single = idsOf((row) => !row.is_member)
    await db.query(
      `update payments set revert_count = revert_count + 1 where id = any ($1) and state = 'verified'`,
      [single],
    )
    const grouped = idsOf((row) => row.is_member && !isReverted.has(row.hash))
    for (const paymentId of [...single, ...grouped]) await queueSettlement(db, paymentId, null)
    await sendAlone(
      db,
      idsOf((row) => row.is_member && isReverted.has(row.hash)),
    )
  })
}
