import type { Hex } from 'viem'
import type { X402Reason } from '../../../shared/till/x402.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { createDelivery, transferEventKey } from '../../events/deliveries.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'
import { findEndpointByResource } from '../endpoints/endpoints.ts'
import { BOOK_DELAY_S } from '../payments/books.ts'
import { countGas } from './settlementBudgets.ts'
import { keepAlone, sendAlone } from './settlementQueue.ts'
import { recordWalletCodes } from './walletCodes.ts'

/** Identifies a block of the chain. */
export type BlockRef = { blockNumber: bigint; blockHash: Hex }

/** Reads a block from a database row. */
export const blockRefOf = (row: { block_number: string; block_hash: Hex }): BlockRef => ({
  blockNumber: BigInt(row.block_number),
  blockHash: row.block_hash,
})

/**
 * Describes the settlement of a payment: the block, the transaction and the Transfer event that show the payment's
 * transfer.
 */
export type Settlement = BlockRef & {
  paymentId: string
  txHash: Hex
  /** Holds the index of the payment's Transfer event in its block. */
  logIndex: number
  /** Holds the text of the signed receipt, which the service stores and sends without any change. */
  receiptText: string
  settledAt: Date
}

/** Describes a mined transaction of a gas wallet. */
export type MinedTransaction = BlockRef & {
  hash: Hex
  succeeded: boolean
  gasUsed: bigint
  /** Holds the fee of the transaction. Null means that the RPC node does not tell the fee. */
  feeWei: bigint | null
}

type SettledRow = EventRow & { match_key: string | null; first: boolean }

/** Holds the data of a payment for the payment's event. */
type EventRow = {
  id: string
  project_id: string
  state: 'settled' | 'failed'
  amount_atomic: string
  network: string
  payer: string
  resource_url: string
  resource_source: 'seller' | 'payer'
  payment_identifier: string | null
  tx_hash: string | null
  failure_reason: string | null
  traceparent: string | null
}

const EVENT_COLUMNS = `p.id, p.project_id, p.state, p.amount_atomic, p.network, p.payer, p.resource_url, p.resource_source,
  p.payment_identifier, p.tx_hash,
  p.failure_reason, p.traceparent`

const paymentEvent = (row: EventRow): NewEvent => ({
  projectId: row.project_id,
  traceparent: row.traceparent,
  type: `payment.${row.state}`,
  data: {
    paymentId: row.id,
    status: row.state,
    amountUsdcRaw: row.amount_atomic,
    network: row.network,
    payerAddress: row.payer,
    resourceUrl: row.resource_url,
    resourceSource: row.resource_source,
    paymentIdentifier: row.payment_identifier,
    txHash: row.tx_hash,
    failureReason: row.failure_reason,
  },
})

/**
 * Records the settlement of payments in one database transaction: the state, the receipt and the webhook delivery of
 * each payment. The function also notifies callers that wait for these payments. After a reorganisation, a payment that
 * settles again causes no second webhook. It keeps its receipt if the same transaction settles it again. It gets a new
 * time, so that a reader of the account book, who continues after the last entry, reads this payment again.
 * @param mined lists the transactions that settled the payments. No other transaction with the same nonce can be mined
 * any more, so the function marks such transactions as void.
 * @param apart lists the payments that a group transaction (for several payments) should have settled but did not
 * transfer. The service then examines each of them, and sends it in its own transaction.
 * @param spoilers lists payers who made a group transaction (for several payments) revert. For a day, the service sends
 * each payment of these payers in a separate transaction.
 */
export async function recordSettlements(
  pool: Pool,
  {
    settlements,
    mined,
    apart = [],
    spoilers = [],
  }: {
    settlements: readonly Settlement[]
    mined: readonly MinedTransaction[]
    apart?: readonly string[]
    spoilers?: readonly { chainId: number; payer: string }[]
  },
): Promise<void> {
  if (settlements.length + mined.length + spoilers.length === 0) return
  await transaction(pool, async (db) => {
    await keepAlone(db, spoilers)
    await markMined(db, mined)
    const settled = await markSettled(db, settlements)
    await sendAlone(db, apart)
    await recordWalletCodes(
      db,
      settled.map((row) => row.id),
    )
    const texts = new Map(settlements.map((one) => [one.paymentId, one.receiptText]))
    for (const row of settled) {
      if (row.first) await announce(db, row, texts.get(row.id)!)
    }
    await notifyChanged(
      db,
      settled.map((row) => row.id),
    )
    await recordEvents(db, settled.filter((row) => row.first).map(paymentEvent))
  })
}

/**
 * Locks transactions of gas wallets in the order of their hashes, so that two processes that record the same
 * transactions cannot deadlock.
 */
export async function lockTransactions(db: Queryable, hashes: readonly Hex[]): Promise<void> {
  await db.query({
    name: 'lock-transactions',
    text: 'select from chain_transactions where hash = any ($1) order by hash for no key update',
    values: [hashes],
  })
}

/** Records that transactions are in a block, and adds their gas to the daily gas counts. */
export async function markMined(db: Queryable, mined: readonly MinedTransaction[]): Promise<void> {
  if (mined.length === 0) return
  await lockTransactions(
    db,
    mined.map((one) => one.hash),
  )
  await countGas(db, mined)
  await db.query({
    name: 'mark-mined',
    text: `
      with done as (
        update chain_transactions t set
          state = 'mined', succeeded = m.succeeded, block_number = m.number, block_hash = m.hash,
          fee_wei = coalesce(m.fee, t.fee_wei)
        from unnest($1::text[], $2::boolean[], $3::bigint[], $4::text[], $5::numeric[]) m (tx, succeeded, number, hash, fee)
        where t.hash = m.tx
        returning t.chain_id, t.wallet, t.nonce
      )
      update chain_transactions r set state = 'void' from done d
      where r.chain_id = d.chain_id and r.wallet = d.wallet and r.nonce = d.nonce and r.state = 'open'
        and r.hash <> all ($1)`,
    values: [
      mined.map((one) => one.hash),
      mined.map((one) => one.succeeded),
      mined.map((one) => one.blockNumber),
      mined.map((one) => one.blockHash),
      mined.map((one) => one.feeWei),
    ],
  })
}

async function markSettled(
  db: Queryable,
  settlements: readonly Settlement[],
): Promise<SettledRow[]> {
  if (settlements.length === 0) return []
  const { rows } = await db.query<SettledRow>({
    name: 'mark-settled',
    text: `
      with wanted as (
        select s.*, p.signed_receipt is null as first, p.tx_hash is not distinct from s.tx as same
        from unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[], $7::int[])
          s (id, tx, number, hash, receipt, at, log)
        join payments p on p.id = s.id
        where p.state = 'verified'
        order by p.id for no key update of p
      )
      update payments p set
        state = 'settled', tx_hash = w.tx, block_number = w.number, block_hash = w.hash, log_index = w.log,
        signed_receipt = case when w.same and p.signed_receipt is not null then p.signed_receipt else w.receipt end,
        settled_at = greatest(w.at, clock_timestamp() - make_interval(secs => ${BOOK_DELAY_S})),
        trouble = null
      from wanted w where p.id = w.id
      returning ${EVENT_COLUMNS}, p.match_key, w.first`,
    values: [
      settlements.map((one) => one.paymentId),
      settlements.map((one) => one.txHash),
      settlements.map((one) => one.blockNumber),
      settlements.map((one) => one.blockHash),
      settlements.map((one) => one.receiptText),
      settlements.map((one) => one.settledAt),
      settlements.map((one) => one.logIndex),
    ],
  })
  return rows
}

async function announce(db: Queryable, payment: SettledRow, receiptText: string): Promise<void> {
  const event = 'payment.received'
  if (payment.match_key === null) return
  const endpoint = await findEndpointByResource(db, payment.project_id, payment.match_key)
  if (endpoint === null || endpoint.webhookUrl === null) return
  await createDelivery(db, {
    projectId: payment.project_id,
    to: { endpointId: endpoint.id },
    subjectId: payment.id,
    event,
    url: endpoint.webhookUrl,
    body: Buffer.from(receiptText),
    idempotencyKey: transferEventKey({ ownerId: endpoint.id, event, id: payment.id }),
    traceparent: payment.traceparent,
  })
}

/** Notifies callers that wait for changes of the given payments. */
export async function notifyChanged(db: Queryable, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await db.query({
    name: 'notify-changed-payments',
    text: `select pg_notify('${CHANGES_CHANNEL}', id) from unnest($1::text[]) i (id)`,
    values: [ids],
  })
}

/**
 * Ends a payment without a transfer on the chain. Callers use `failPayment` only if the authorization can never be
 * settled. A payment with an open transaction does not fail, because another process may have sent this transaction
 * after the caller judged the payment.
 * @param failure.cannotPay is true if no open transaction can take the money any more, for example after the expiry.
 * The payment then fails even with an open transaction.
 * @param alongside is a function that runs in the same database transaction, but only if this call of `failPayment`
 * ends the payment.
 */
export async function failPayment(
  pool: Pool,
  failure: {
    paymentId: string
    stage: 'verify' | 'settle'
    reason: X402Reason
    detail: string | null
    cannotPay?: boolean
  },
  alongside?: (db: Queryable) => Promise<void>,
): Promise<void> {
  const { paymentId, stage, reason, detail, cannotPay = false } = failure
  await transaction(pool, async (db) => {
    // A process holds this lock while it stores a transaction of the payment. Therefore the next statement sees a
    // transaction that another process has just stored.
    await db.query('select from payments where id = $1 for no key update', [paymentId])
    const { rows } = await db.query<EventRow>(
      `update payments p set state = 'failed', failure_stage = $2, failure_reason = $3, failure_detail = $4,
         trouble = null
       where id = $1 and state = 'verified' and ($5 or not exists (
         select from transaction_payments m join chain_transactions t on t.hash = m.hash
         where m.payment_id = p.id and t.state = 'open'))
       returning ${EVENT_COLUMNS}`,
      [paymentId, stage, reason, detail, cannotPay],
    )
    if (rows.length > 0) await alongside?.(db)
    await notifyChanged(
      db,
      rows.map((row) => row.id),
    )
    await recordEvents(db, rows.map(paymentEvent))
  })
}
