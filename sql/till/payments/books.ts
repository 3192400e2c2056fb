/** Reads the account book of a project, which lists all incoming and outgoing money in the order of settlement. */
import type { Hex } from 'viem'
import type { Queryable } from '../../db.ts'

/**
 * Describes one transfer of money in the account book. The kind `payment` means that the project received money. The
 * kind `refund` means that the project paid money back to a payer. The kind `purchase` means that the project's purse
 * bought something. The kind `sweep` means that the owner took money out of the purse.
 */
export type BookEntry = {
  /** Orders the entries of the account book that have the same time. */
  row: bigint
  kind: 'payment' | 'refund' | 'purchase' | 'sweep'
  id: string
  /** Holds the id of the refunded payment, if the book entry is a refund. */
  refundOf: string | null
  settledAt: Date
  endpointId: string | null
  resourceUrl: string
  payer: string
  recipient: string
  /** Tells whether the other party of the transfer is an address of the same project. */
  isOwn: boolean
  amountAtomic: bigint
  network: string
  asset: string
  txHash: Hex
  logIndex: number | null
  blockNumber: bigint | null
  /** Tells whether the block of the transfer is final. */
  isFinal: boolean
  /**
   * Holds the part of the transaction fee that belongs to the book entry, if the service's gas wallet paid the fee.
   * Each part is a whole number of wei, and the parts of one transaction add up to its fee. The fee is null if somebody
   * else sent the transaction, if the transaction also contained calls of purses, or if an older release recorded it.
   */
  feeWei: bigint | null
}

/** Describes the position in the account book at which the next page continues. */
export type BookCursor = { settledAt: Date; row: bigint }

/**
 * Sets by how many seconds the account book follows the present. A payment gets the time of its receipt, which is signed
 * before the database transaction begins. No transaction stores an entry with an earlier time than its beginning minus
 * this delay.
 */
export const BOOK_DELAY_S = 2

/**
 * Reads until which time the account book is complete: no entry with an earlier time can be committed any more.
 * Callers must read the entries with a later query, because its snapshot contains all entries up to `end`.
 */
export async function readBookEnd(db: Queryable): Promise<{ end: Date; now: Date }> {
  const { rows } = await db.query<{ end: Date; now: Date }>({
    name: 'read-book-end',
    text: `
      select clock_timestamp() as now, least(now(), min(xact_start)) - make_interval(secs => ${BOOK_DELAY_S}) as end
      from pg_stat_activity
      where datname = current_database() and backend_xid is not null`,
  })
  return rows[0]!
}

const AFTER = '> ($4, $5::bigint)'

/**
 * The SQL query limits the number of entries of each kind separately. In this way, PostgreSQL finds the first entries
 * of each kind by an index.
 */
const PARTS = {
  payments: `
    select p.row * 4 as row, 'payment' as kind, p.id, null as refund_of, p.settled_at as at, p.endpoint_id, p.resource_url,
      p.payer, p.recipient, p.payer as other, p.amount_atomic, p.network, p.asset, p.tx_hash, p.log_index, p.block_number,
      p.finalized_at as final_at
    from payments p
    where p.project_id = $1 and p.state = 'settled' and p.settled_at >= $2 and p.settled_at < $3
      and (p.settled_at, p.row * 4) ${AFTER}
    order by p.settled_at, p.row limit $6`,
  handRefunds: `
    select r.row * 4 + 1, 'refund', r.id, r.payment_id, r.spent_at, p.endpoint_id, p.resource_url, r.payer, r.pay_to,
      r.pay_to, r.amount_atomic, r.network, r.asset, r.tx_hash, r.log_index, r.block_number, r.final_at
    from hand_refunds r join payments p on p.id = r.payment_id
    where r.project_id = $1 and r.state = 'spent' and r.spent_at >= $2 and r.spent_at < $3
      and (r.spent_at, r.row * 4 + 1) ${AFTER}
    order by r.spent_at, r.row limit $6`,
  purse: `
    select u.row * 4 + 2, case u.kind when 'payment' then 'purchase' else u.kind end, u.id, u.refund_of, u.spent_at,
      p.endpoint_id, coalesce(p.resource_url, u.resource, u.host || u.path), u.payer, u.pay_to, u.pay_to, u.amount_atomic,
      u.network, u.asset, u.tx_hash, u.log_index, u.block_number, u.final_at
    from purchases u left join payments p on p.id = u.refund_of
    where u.project_id = $1 and u.money = 'spent' and u.spent_at >= $2 and u.spent_at < $3 and (u.kind = 'refund' or $7)
      and (u.spent_at, u.row * 4 + 2) ${AFTER}
    order by u.spent_at, u.row limit $6`,
}

/**
 * Lists the account book's entries of a period, oldest first, with at most `limit` entries after the cursor.
 * @param wanted.withPurse tells whether the list also contains the purse's purchases and withdrawals (sweeps).
 */
export async function listBookEntries(
  db: Queryable,
  {
    projectId,
    from,
    to,
    after,
    limit,
    withPurse,
  }: {
    projectId: string
    from: Date
    to: Date
    after: BookCursor | null
    limit: number
    withPurse: boolean
  },
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
        select * from (
          (${PARTS.payments}) union all (${PARTS.handRefunds}) union all (${PARTS.purse})) every_part
        order by at, row limit $6
      )
      select p.row, p.kind, p.id, p.refund_of as "refundOf", p.at as "settledAt", p.endpoint_id as "endpointId",
        p.resource_url as "resourceUrl", p.payer, p.recipient, lower(p.other) = any (j.own_addresses) as "isOwn",
        p.amount_atomic as "amountAtomic", p.network, p.asset, p.tx_hash as "txHash", p.log_index as "logIndex",
        p.block_number as "blockNumber", p.final_at is not null as "isFinal",
        -- The parts of a transaction fee are whole numbers of wei that add up to the fee.
        trunc(t.fee_wei * g.number / g.members) - trunc(t.fee_wei * (g.number - 1) / g.members) as "feeWei"
      from page p join projects j on j.id = $1
      left join chain_transactions t on t.hash = p.tx_hash
      left join lateral (
        select count(*) as members, count(*) filter (where m.payment_id <= p.id) as number
        from transaction_payments m where m.hash = t.hash
        having bool_or(m.payment_id = p.id)
      ) g on true
      order by p.at, p.row`,
    values: [
      ...[projectId, from, to, after?.settledAt ?? new Date(0), after?.row ?? 0n, limit],
      withPurse,
    ],
  })
  return rows.map(({ row, amountAtomic, blockNumber, feeWei, ...entry }) => ({
    ...entry,
    row: BigInt(row),
    amountAtomic: BigInt(amountAtomic),
    blockNumber: blockNumber === null ? null : BigInt(blockNumber),
    feeWei: feeWei === null ? null : BigInt(feeWei),
  }))
}
