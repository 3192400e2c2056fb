import type { Address, Hex } from 'viem'
import type { Cursor } from '../../../shared/cursor.ts'
import type { Transfer } from '../../../shared/till/authorization.ts'
import type { NetworkName } from '../../../shared/till/usdc.ts'
import type { X402Reason } from '../../../shared/till/x402.ts'
import type { Queryable } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'
import { GOES_ALONE } from '../settle/settlementQueue.ts'

type PaymentState = 'verified' | 'settled' | 'failed'

/** Describes a stored payment. Amounts are in atomic units of the token. */
export type Payment = Transfer & {
  row: bigint
  id: string
  projectId: string
  endpointId: string | null
  endpointUrl: string | null
  matchKey: string | null
  resourceUrl: string
  resourceSource: 'seller' | 'payer'
  x402Version: 1 | 2
  paymentIdentifier: string | null
  network: NetworkName
  chainId: number
  claimHead: bigint | null
  state: PaymentState
  failureStage: 'verify' | 'settle' | null
  failureReason: X402Reason | null
  failureDetail: string | null
  troubleCount: number
  /** Counts how often two simulations of the payment contradicted each other. */
  contradictionCount: number
  revertCount: number
  /**
   * Holds the hash of the transaction that settled the payment. While the payment's state is `verified`, this is the
   * hash of its newest signed transaction.
   */
  txHash: Hex | null
  /**
   * Holds the index of the payment's Transfer event in its block. Null means that the payment is not settled, or that
   * an older version of the service settled the payment.
   */
  logIndex: number | null
  /** Tells whether the payment must have its own transaction, for example after a revert. */
  goesAlone: boolean
  blockNumber: bigint | null
  /** Holds the exact text of the payment's receipt that the service signed and sent. */
  signedReceipt: string | null
  granted: boolean
  createdAt: Date
  settledAt: Date | null
  finalizedAt: Date | null
  traceparent: string | null
}

type TransferRow = {
  asset: Address
  payer: Address
  recipient: Address
  amount_atomic: string
  valid_after: string
  valid_before: string
  authorization_nonce: Hex
  signature: Hex
  factory: Address | null
  factory_data: Hex | null
}

type PaymentRow = TransferRow & {
  row: string
  id: string
  project_id: string
  endpoint_id: string | null
  url_pattern: string | null
  match_key: string | null
  resource_url: string
  resource_source: 'seller' | 'payer'
  x402_version: 1 | 2
  payment_identifier: string | null
  network: NetworkName
  chain_id: string
  claim_head: string | null
  state: PaymentState
  failure_stage: 'verify' | 'settle' | null
  failure_reason: X402Reason | null
  failure_detail: string | null
  trouble_count: number
  contradiction_count: number
  revert_count: number
  tx_hash: Hex | null
  newest_hash: Hex | null
  log_index: number | null
  goes_alone: boolean
  block_number: string | null
  signed_receipt: string | null
  granted: boolean
  created_at: Date
  settled_at: Date | null
  finalized_at: Date | null
  traceparent: string | null
}

const SELECT_PAYMENT = `
  select p.row, p.id, p.project_id, p.endpoint_id, e.url_pattern, p.match_key, p.resource_url, p.resource_source, p.x402_version, p.payment_identifier,
         p.network, p.chain_id, p.asset, p.payer, p.recipient, p.amount_atomic, p.valid_after, p.valid_before,
         p.authorization_nonce, p.signature, p.factory, p.factory_data, p.claim_head, p.state, p.failure_stage, p.failure_reason,
         p.failure_detail, p.trouble_count, p.contradiction_count, p.revert_count, p.tx_hash, p.block_number, p.log_index, p.signed_receipt,
         p.granted_at is not null as granted, p.created_at, p.settled_at, p.finalized_at, p.traceparent,
         case when p.state = 'verified' then (
           select t.hash from transaction_payments m join chain_transactions t on t.hash = m.hash
           where m.payment_id = p.id and t.state <> 'void'
           order by t.signed_at desc limit 1) end as newest_hash,
         case when p.state = 'verified' then ${GOES_ALONE} else false end as goes_alone
  from payments p left join seller_endpoints e on e.id = p.endpoint_id`

const bigintOrNull = (text: string | null): bigint | null => (text === null ? null : BigInt(text))

/** Returns the transfer of a payment row, or of the data from which the service stores a payment. */
export const transferOf = (row: TransferRow): Transfer => ({
  asset: row.asset,
  payer: row.payer,
  recipient: row.recipient,
  amountAtomic: BigInt(row.amount_atomic),
  validAfter: BigInt(row.valid_after),
  validBefore: BigInt(row.valid_before),
  nonce: row.authorization_nonce,
  signature: row.signature,
  deployment:
    row.factory === null || row.factory_data === null
      ? null
      : { factory: row.factory, factoryData: row.factory_data },
})

const toPayment = (row: PaymentRow): Payment => ({
  row: BigInt(row.row),
  id: row.id,
  projectId: row.project_id,
  endpointId: row.endpoint_id,
  endpointUrl: row.url_pattern,
  matchKey: row.match_key,
  resourceUrl: row.resource_url,
  resourceSource: row.resource_source,
  x402Version: row.x402_version,
  paymentIdentifier: row.payment_identifier,
  network: row.network,
  chainId: Number(row.chain_id),
  ...transferOf(row),
  claimHead: bigintOrNull(row.claim_head),
  state: row.state,
  failureStage: row.failure_stage,
  failureReason: row.failure_reason,
  failureDetail: row.failure_detail,
  troubleCount: row.trouble_count,
  contradictionCount: row.contradiction_count,
  revertCount: row.revert_count,
  txHash: row.tx_hash ?? row.newest_hash,
  logIndex: row.log_index,
  goesAlone: row.goes_alone,
  blockNumber: bigintOrNull(row.block_number),
  signedReceipt: row.signed_receipt,
  granted: row.granted,
  createdAt: row.created_at,
  settledAt: row.settled_at,
  finalizedAt: row.finalized_at,
  traceparent: row.traceparent,
})

/** Finds one payment of any project by id. @returns null if the payment does not exist. */
export async function findPayment(db: Queryable, id: string): Promise<Payment | null> {
  return (await findPayments(db, [id]))[0] ?? null
}

/** Finds payments of any project. The result has no particular order. */
export async function findPayments(db: Queryable, ids: readonly string[]): Promise<Payment[]> {
  if (ids.length === 0) return []
  const { rows } = await db.query<PaymentRow>({
    name: 'find-payments',
    text: `${SELECT_PAYMENT} where p.id = any ($1)`,
    values: [ids],
  })
  return rows.map(toPayment)
}

/**
 * Identifies an authorization (EIP-3009) by its chain, token, payer and nonce. The database accepts each combination
 * only once.
 */
export type ClaimKey = { chainId: number; asset: string; payer: string; nonce: string }

/** Describes the name (payment identifier) that a payer gave to a payment. */
type NamedPayment = { projectId: string; paymentIdentifier: string }

/**
 * Finds the payment that was stored for an authorization, in any project.
 * @returns null if no payment is stored for the authorization.
 */
export async function findClaim(db: Queryable, claim: ClaimKey): Promise<Payment | null> {
  const { rows } = await db.query<PaymentRow>({
    name: 'find-claim',
    text: `${SELECT_PAYMENT}
           where p.chain_id = $1 and p.asset = $2 and lower(p.payer) = lower($3) and p.authorization_nonce = $4`,
    values: [claim.chainId, claim.asset, claim.payer, claim.nonce],
  })
  return rows[0] === undefined ? null : toPayment(rows[0])
}

/**
 * Tells whether the payer has already given the name (payment identifier) to another payment in the project. Failed
 * payments with the same name do not count.
 */
export async function isNamedPayment(
  db: Queryable,
  { projectId, paymentIdentifier, ...claim }: ClaimKey & NamedPayment,
): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'is-named-payment',
    text: `select from payments
           where project_id = $1 and payment_identifier = $2 and lower(payer) = lower($5) and state <> 'failed'
             and (chain_id, asset, authorization_nonce) <> ($3, $4, $6)`,
    values: [projectId, paymentIdentifier, claim.chainId, claim.asset, claim.payer, claim.nonce],
  })
  return rowCount === 1
}

/** Selects the payments of a list. A null filter field does not restrict the list. */
export type PaymentFilter = {
  state: PaymentState | null
  endpointId: string | null
  /** Holds the address of the payer. The comparison of addresses ignores upper and lower case. */
  payer: string | null
  from: Date | null
  to: Date | null
  minAtomic: bigint | null
  maxAtomic: bigint | null
}

/** Lists the payments of a project, newest first, with at most `limit` payments after the cursor. */
export async function listPayments(
  db: Queryable,
  {
    projectId,
    limit,
    cursor,
    filter,
  }: { projectId: string; limit: number; cursor: Cursor | null; filter: PaymentFilter },
): Promise<Payment[]> {
  const { rows } = await db.query<PaymentRow>({
    name: 'list-payments',
    text: `${SELECT_PAYMENT}
           where p.project_id = $1 and (p.created_at, p.row) < ($2::timestamptz, $3::bigint)
             and ($5::text is null or p.state = $5) and ($6::text is null or p.endpoint_id = $6)
             and ($7::text is null or lower(p.payer) = lower($7))
             and ($8::timestamptz is null or p.created_at >= $8)
             and ($9::timestamptz is null or p.created_at < $9)
             and ($10::numeric is null or p.amount_atomic >= $10)
             and ($11::numeric is null or p.amount_atomic <= $11)
           order by p.created_at desc, p.row desc limit $4`,
    values: [
      ...[projectId, ...pageStart(cursor), limit, filter.state, filter.endpointId, filter.payer],
      ...[filter.from, filter.to, filter.minAtomic, filter.maxAtomic],
    ],
  })
  return rows.map(toPayment)
}

/** Lists payments of a project that have settled since a given time, the latest first. */
export async function listSettled(
  db: Queryable,
  { projectId, since, limit }: { projectId: string; since: Date; limit: number },
): Promise<Payment[]> {
  const { rows } = await db.query<PaymentRow>({
    name: 'list-settled',
    text: `${SELECT_PAYMENT}
           where p.project_id = $1 and p.state = 'settled' and p.settled_at >= $2
           order by p.settled_at desc, p.row desc limit $3`,
    values: [projectId, since, limit],
  })
  return rows.map(toPayment)
}

/** Describes the delivery of a webhook about a payment. */
export type PaymentDelivery = {
  id: string
  event: string
  status: string
  attempt: number
  nextAttemptAt: Date | null
  createdAt: Date
}

/**
 * Returns the newest webhook delivery of each given payment. The result leaves out payments without a webhook delivery.
 */
export async function latestDeliveries(
  db: Queryable,
  paymentIds: readonly string[],
): Promise<Map<string, { deliveryId: string; status: string }>> {
  const { rows } = await db.query<{ subjectId: string; deliveryId: string; status: string }>({
    name: 'latest-deliveries',
    text: `select distinct on (subject_id) subject_id as "subjectId", id as "deliveryId", status
           from webhook_deliveries where subject_id = any ($1) order by subject_id, row desc`,
    values: [paymentIds],
  })
  return new Map(rows.map(({ subjectId, ...delivery }) => [subjectId, delivery]))
}

/** Lists the webhook deliveries of a payment, oldest first. */
export async function listPaymentDeliveries(
  db: Queryable,
  paymentId: string,
): Promise<PaymentDelivery[]> {
  const { rows } = await db.query<{
    id: string
    event: string
    status: string
    attempt: number
    next_attempt_at: Date | null
    created_at: Date
  }>(
    `select id, event, status, attempt, next_attempt_at, created_at from webhook_deliveries
     where subject_id = $1 order by row`,
    [paymentId],
  )
  return rows.map((row) => ({
    id: row.id,
    event: row.event,
    status: row.status,
    attempt: row.attempt,
    nextAttemptAt: row.next_attempt_at,
    createdAt: row.created_at,
  }))
}
