/** The books of a project: what came in, in the order of its settlement. */
import type { Address, Hex } from 'viem'
import type { Queryable } from '../../db.ts'

/** A settled payment as the books show it. */
export type BookEntry = {
  row: bigint
  paymentId: string
  settledAt: Date
  endpointId: string | null
  resourceUrl: string
  payer: Address
  recipient: Address
  /** Whether the payer is an address of the project itself. */
  isOwn: boolean
  amountAtomic: bigint
  network: string
  asset: Address
  txHash: Hex
  logIndex: number | null
  blockNumber: bigint | null
  /** Its block is final. */
  isFinal: boolean
  /**
   * Its share of the transaction's fee, paid by our gas wallet: whole wei that add up to the fee over the members of a group.
   * Null: somebody else sent the transaction, or an older release recorded it.
   */
  feeWei: bigint | null
}

/** Where the books go on. */
export type BookCursor = { settledAt: Date; row: bigint }

/** Entries settled from one time until before another, oldest first, at most `limit` after the cursor. */
export async function listBookEntries(
  db: Queryable,
  {
    projectId,
    from,
    to,
    after,
    limit,
  }: { projectId: string; from: Date; to: Date; after: BookCursor | null; limit: number },
): Promise<BookEntry[]> {
  const { rows } = await db.query<
    Omit<BookEntry, 'row' | 'amountAtomic' | 'blockNumber' | 'feeWei'> & {
      row: string
      amountAtomic: string
      blockNumber: string | null
      feeWei: string | null
    }
  >({
    name: 'list-book-entries',
    text: `
      with page as (
        select p.* from payments p
        where p.project_id = $1 and p.state = 'settled' and p.settled_at >= $2 and p.settled_at < $3
          and (p.settled_at, p.row) > ($4, $5::bigint)
        order by p.settled_at, p.row limit $6
      )
      select p.row, p.id as "paymentId", p.settled_at as "settledAt", p.endpoint_id as "endpointId",
        p.resource_url as "resourceUrl", p.payer, p.recipient, lower(p.payer) = any (j.own_addresses) as "isOwn",
        p.amount_atomic as "amountAtomic", p.network, p.asset, p.tx_hash as "txHash", p.log_index as "logIndex",
        p.block_number as "blockNumber", p.finalized_at is not null as "isFinal",
        -- Whole numbers whose sum is the fee.
        trunc(t.fee_wei * g.number / g.members) - trunc(t.fee_wei * (g.number - 1) / g.members) as "feeWei"
      from page p join projects j on j.id = p.project_id
      left join chain_transactions t on t.hash = p.tx_hash
      left join lateral (
        select count(*) as members, count(*) filter (where m.payment_id <= p.id) as number
        from transaction_payments m where m.hash = t.hash
        having bool_or(m.payment_id = p.id)
      ) g on true
      order by p.settled_at, p.row`,
    values: [projectId, from, to, after?.settledAt ?? new Date(0), after?.row ?? 0n, limit],
  })
  return rows.map(({ row, amountAtomic, blockNumber, feeWei, ...entry }) => ({
    ...entry,
    row: BigInt(row),
    amountAtomic: BigInt(amountAtomic),
    blockNumber: blockNumber === null ? null : BigInt(blockNumber),
    feeWei: feeWei === null ? null : BigInt(feeWei),
  }))
}
