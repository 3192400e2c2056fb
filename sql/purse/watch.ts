/** Records whether a signed payment of a purse is settled on the chain, has expired, or is still open. */
import type { Address, Hex } from 'viem'
import type { Transfer } from '../../shared/till/authorization.ts'
import { CHANGES_CHANNEL } from '../changes.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { recordEvents } from '../events/events.ts'
import { type BlockRef, blockRefOf } from '../till/settle/settlements.ts'
import { purchaseEvent } from './purchases/purchaseSteps.ts'
import { readRefundFacts, type SignRefund, tellRefund } from './refunds/refundFacts.ts'

/** Describes a signed payment of a purse (a project's wallet). */
export type Signed = {
  id: string
  transfer: Omit<Transfer, 'signature' | 'deployment'>
  /**
   * Holds the number of the chain's newest block when the payment was signed. Null means that the service knew no block
   * at that time.
   */
  signedBlock: bigint | null
}

/**
 * Describes an open payment of a purse. The field `isCancelSeen` tells whether an earlier poll of the chain has seen
 * its cancellation.
 */
export type Open = Signed & { row: bigint; isCancelSeen: boolean }

/** Describes a payment of a purse whose Transfer event is in a block that is not final yet. */
export type Spent = Signed & { txHash: Hex; blockNumber: bigint; blockHash: Hex }

type Row = {
  id: string
  asset: Address
  payer: Address
  pay_to: Address
  amount_atomic: string
  valid_before: string
  nonce: Hex
  signed_block: string | null
  tx_hash: Hex | null
  block_number: string | null
  block_hash: Hex | null
}

const COLUMNS =
  'id, asset, payer, pay_to, amount_atomic, valid_before, nonce, signed_block, tx_hash, block_number, block_hash'

const toSigned = (row: Row): Signed => ({
  id: row.id,
  transfer: {
    asset: row.asset,
    payer: row.payer,
    recipient: row.pay_to,
    amountAtomic: BigInt(row.amount_atomic),
    validAfter: 0n,
    validBefore: BigInt(row.valid_before),
    nonce: row.nonce,
  },
  signedBlock: row.signed_block === null ? null : BigInt(row.signed_block),
})

type OpenRow = Row & { row: string; cancel_seen: boolean }

const OPEN_COLUMNS = `row, ${COLUMNS}, cancel_seen_at is not null as cancel_seen`

const toOpen = (row: OpenRow): Open => ({
  ...toSigned(row),
  row: BigInt(row.row),
  isCancelSeen: row.cancel_seen,
})

/**
 * Finds open payments of purses on a chain. Each poll of the chain reads one part of the list. Unsettled payments stay
 * open until their expiry, and must not delay newer payments.
 * @param after is the row number of the last payment that the previous poll read. The number 0 starts the list at the
 * first payment.
 */
export async function findOpen(
  db: Queryable,
  network: string,
  { after, limit }: { after: bigint; limit: number },
): Promise<Open[]> {
  const { rows } = await db.query<OpenRow>({
    name: 'find-open-purchases',
    text: `select ${OPEN_COLUMNS} from purchases where money = 'open' and network = $1 and row > $2
           order by row limit $3`,
    values: [network, after, limit],
  })
  return rows.map(toOpen)
}

/**
 * Finds the open payments of each project, beginning with those that expire last, which usually are the newest. The
 * result holds the same number for each project, so that the many payments of one project do not delay those of
 * another.
 * @param after is the id of the last project of the previous poll. The empty string starts with the first project.
 * @param limit is the maximum number of projects and also of payments.
 * @returns the payments, and the id after which the next poll continues.
 */
export async function findNewestOpen(
  db: Queryable,
  network: string,
  { after, limit }: { after: string; limit: number },
): Promise<{ open: Open[]; lastProject: string }> {
  // If all open payments of a project are on other chains, the result has a row for the project with null in place of a
  // payment. The row is needed if the project is the last project of this poll, because the next poll begins after it.
  const { rows } = await db.query<(OpenRow | { row: null }) & { last_project: string }>({
    name: 'find-newest-open-purchases',
    text: `
      with recursive owners as (
        (select project_id, 1 as n from purchases where money = 'open' and project_id > $2 order by project_id limit 1)
        union all
        select (select project_id from purchases where money = 'open' and project_id > o.project_id
                order by project_id limit 1), n + 1
        from owners o where o.project_id is not null and n < $3
      ), named as materialized (
        select project_id from owners where project_id is not null
      )
      select p.*, case when (select count(*) from named) < $3 then '' else (select max(project_id) from named) end
        as last_project
      from named left join lateral (
        select ${OPEN_COLUMNS} from purchases
        where project_id = named.project_id and money = 'open' and network = $1
        order by valid_before desc, row desc limit $3 / (select count(*) from named)) p on true`,
    values: [network, after, limit],
  })
  const open = rows.filter((row) => row.row !== null).map(toOpen)
  return { open, lastProject: rows[0]?.last_project ?? '' }
}

/**
 * Records that the chain shows the cancellation of a payment, so that the service does not send the cancellation again.
 */
export async function recordCancelSeen(db: Queryable, id: string): Promise<void> {
  await db.query(
    'update purchases set cancel_seen_at = clock_timestamp() where id = $1 and cancel_seen_at is null',
    [id],
  )
}

/** Records that the chain no longer shows the cancellations of payments, so that the service sends them again. */
export async function forgetCancels(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.query(
    `update purchases set cancel_seen_at = null where id = any ($1) and money = 'open'`,
    [ids],
  )
}

/**
 * Selects those transfers of purses that are in blocks up to a given number. After a reorganisation, the list starts
 * with the newest block, because a reorganisation replaces the newest blocks.
 */
export type TransferPart = { upTo: bigint; limit: number; first: 'oldest' | 'newest' }

/**
 * Finds the spent payments of purses in blocks up to the given number, but only payments whose blocks are not known to
 * be final.
 */
export async function findSpent(
  db: Queryable,
  network: string,
  { upTo, limit, first }: TransferPart,
): Promise<Spent[]> {
  const { rows } = await db.query<Row>({
    name: `find-${first}-spent-purchases`,
    text: `select ${COLUMNS} from purchases
           where money = 'spent' and final_at is null and network = $1 and block_number <= $2
           order by block_number ${first === 'newest' ? 'desc' : ''} limit $3`,
    values: [network, upTo, limit],
  })
  return rows.map((row) => ({
    ...toSigned(row),
    txHash: row.tx_hash!,
    blockNumber: BigInt(row.block_number!),
    blockHash: row.block_hash!,
  }))
}

/** Limits how many of the newest transfers of each kind the function reads to find their blocks. */
const NEWEST_MAX = 1_000

/**
 * Returns the newest blocks that are not known to be final and that contain transfers of purses, or refunds that
 * sellers sent by hand. The newest block comes first.
 */
export async function findTransferBlocks(
  db: Queryable,
  network: string,
  limit: number,
): Promise<BlockRef[]> {
  const { rows } = await db.query<{ block_number: string; block_hash: Hex }>({
    name: 'find-transfer-blocks',
    text: `select block_number, block_hash from (
             (select block_number, block_hash from purchases
              where money = 'spent' and final_at is null and network = $1
              order by block_number desc limit ${NEWEST_MAX})
             union
             (select block_number, block_hash from hand_refunds
              where state = 'spent' and final_at is null and network = $1
              order by block_number desc limit ${NEWEST_MAX})) newest
           order by block_number desc limit $2`,
    values: [network, limit],
  })
  return rows.map(blockRefOf)
}

/** Writes SQL that changes the sums of every mandate that covers a purchase. */
const inMandates = (change: string) => `
  update mandates m set ${change} from purchase_mandates pm, changed c
  where pm.purchase_row = c.row and m.row = pm.mandate_row`

/**
 * Records that the chain shows the Transfer event of an open payment, and records a webhook event for the project.
 * @returns false if the payment was not open.
 */
export function recordSpent(
  pool: Pool,
  id: string,
  seen: { txHash: Hex; logIndex: number; blockNumber: bigint; blockHash: Hex },
  signRefund: SignRefund,
): Promise<boolean> {
  return transaction(pool, async (db) => {
    await lockPurseOf(db, id)
    const { rows } = await db.query<SpentRow>(
      `with before as (
         select row, told_at is not null as told from purchases where id = $1 and money = 'open' for update
       ), changed as (
         update purchases u set money = 'spent', tx_hash = $2, block_number = $3, block_hash = $4, log_index = $5,
           spent_at = clock_timestamp(), told_at = coalesce(told_at, clock_timestamp())
         from before b where u.row = b.row
         returning u.row, u.id, u.project_id, u.host, u.path, u.amount_atomic, u.pay_to, u.network, u.tx_hash, u.reason,
           u.payer, u.kind, u.refund_of, b.told
       ), counted as (${inMandates('spent_atomic = m.spent_atomic + c.amount_atomic')})
       select * from changed`,
      [id, seen.txHash, seen.blockNumber, seen.blockHash, seen.logIndex],
    )
    const row = rows[0]
    if (row === undefined) return false
    await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])
    if (row.kind === 'refund') await recordRefund(db, row, signRefund)
    if (row.kind === 'payment' && !row.told) {
      const data = { ...purchaseEvent(row), reason: null }
      await recordEvents(db, [{ projectId: row.project_id, type: 'purse.paid', data }])
    }
    return true
  })
}

type SpentRow = Parameters<typeof purchaseEvent>[0] & {
  project_id: string
  kind: 'payment' | 'sweep' | 'refund'
  payer: string
  refund_of: string | null
  told: boolean
}

/** Stores the receipt of a refund, and notifies the seller's project and the buyer's project once. */
async function recordRefund(db: Queryable, row: SpentRow, sign: SignRefund): Promise<void> {
  const facts = await readRefundFacts(db, {
    id: row.id,
    refundOf: row.refund_of!,
    amountAtomic: BigInt(row.amount_atomic!),
    payer: row.payer,
    payTo: row.pay_to!,
  })
  const txHash = row.tx_hash!
  await db.query('update purchases set receipt = $2 where id = $1', [row.id, sign(facts, txHash)])
  if (!row.told) await tellRefund(db, facts, txHash)
}

/** Records that a reorganisation removed the Transfer event of a payment, so that the payment counts as open again. */
export function recordUnspent(pool: Pool, id: string): Promise<void> {
  return transaction(pool, async (db) => {
    await lockPurseOf(db, id)
    await db.query(
      `with changed as (
         update purchases set money = 'open', tx_hash = null, log_index = null, block_number = null, block_hash = null,
           spent_at = null
         where id = $1 and money = 'spent' and final_at is null returning row, amount_atomic
       )
       ${inMandates('spent_atomic = m.spent_atomic - c.amount_atomic')}`,
      [id],
    )
  })
}

/** Records that the Transfer events of payments are in final blocks. */
export async function recordFinalSpent(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.query(
    `update purchases set final_at = clock_timestamp() where id = any ($1) and money = 'spent' and final_at is null`,
    [ids],
  )
}

/**
 * Gives the amount of an unsettled payment back to the mandates, in the hour of its reservation. The caller must have
 * checked, after a final block past the expiry, that no later block can settle the payment.
 */
export function recordReleased(pool: Pool, id: string): Promise<void> {
  return transaction(pool, async (db) => {
    await lockPurseOf(db, id)
    await db.query(
      `with changed as (
         update purchases set money = 'released', final_at = clock_timestamp()
         where id = $1 and money = 'open' returning row, amount_atomic
       ), hours as (
         update mandate_hours h set amount_atomic = h.amount_atomic - c.amount_atomic
         from purchase_mandates pm, changed c
         where pm.purchase_row = c.row and h.mandate_row = pm.mandate_row
           and h.hour = date_trunc('hour', pm.reserved_at, 'UTC')
       )
       ${inMandates('released_atomic = m.released_atomic + c.amount_atomic')}`,
      [id],
    )
    await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])
  })
}

/**
 * Locks the row of the purse that pays a purchase, because every transaction locks a purse before its mandates
 * (sql/purse/purchases/reserve.ts).
 */
async function lockPurseOf(db: Queryable, purchaseId: string): Promise<void> {
  await db.query(
    `select from purses where project_id = (select project_id from purchases where id = $1) for update`,
    [purchaseId],
  )
}
