import type { Transfer } from '../../../shared/till/authorization.ts'
import type { NetworkName } from '../../../shared/till/usdc.ts'
import { keyLifetime } from '../../account/idempotency.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { addJobsFrom } from '../../queue/jobs.ts'
import {
  AFFORDABLE,
  COUNTED,
  isBudgetRace,
  NO_SETTLEMENT_LIMITS,
  type SettlementLimits,
} from './settlementBudgets.ts'

/** Describes a payment authorization that the service is about to store as a payment. */
export type NewClaim = Transfer & {
  /** Holds the id of the new payment, from `newPaymentId`. */
  id: string
  projectId: string
  /**
   * Holds the id of the seller's endpoint. Null means that the paid resource has no registered endpoint, for example
   * because the seller calls the facilitator directly.
   */
  endpointId: string | null
  matchKey: string | null
  resourceUrl: string
  description: string | null
  network: NetworkName
  chainId: number
  x402Version: 1 | 2
  /**
   * Tells whether the seller named the paid resource. The value `payer` means that only the payer named the resource.
   */
  resourceSource: 'seller' | 'payer'
  /**
   * Holds the name (payment identifier) that the payer gave to the payment. No other payment of the project may have
   * the same name.
   */
  paymentIdentifier: string | null
  /**
   * Holds the trace context (traceparent) of the request that stores the payment, so that the SQL statement belongs to
   * the same trace. If `traceparent` is absent or null, it belongs to no trace.
   */
  traceparent?: string | null
}

/**
 * Converts a payment authorization that the service is about to store to JSON, in which numbers are decimal strings.
 */
export const claimRecord = (claim: NewClaim) => ({
  id: claim.id,
  project_id: claim.projectId,
  endpoint_id: claim.endpointId,
  match_key: claim.matchKey,
  resource_url: claim.resourceUrl,
  description: claim.description,
  network: claim.network,
  chain_id: String(claim.chainId),
  asset: claim.asset,
  payer: claim.payer,
  recipient: claim.recipient,
  amount_atomic: String(claim.amountAtomic),
  valid_after: String(claim.validAfter),
  valid_before: String(claim.validBefore),
  authorization_nonce: claim.nonce,
  signature: claim.signature,
  factory: claim.deployment?.factory ?? null,
  factory_data: claim.deployment?.factoryData ?? null,
  x402_version: claim.x402Version,
  resource_source: claim.resourceSource,
  payment_identifier: claim.paymentIdentifier,
  traceparent: claim.traceparent ?? null,
})

export type ClaimRecord = ReturnType<typeof claimRecord>

/**
 * Locks the names that payers gave to payments. Two unique indexes together decide whether a payment with a name can be
 * stored. All batches of new payments lock the names in the same order, so that two batches cannot deadlock.
 */
const LOCK_NAMES = `
  select pg_advisory_xact_lock(n.name) from (
    select distinct hashtextextended(name, 0) as name from unnest($1::text[]) name order by 1) n`

const CLAIM = `
  with ${AFFORDABLE}, wanted as (
    select w.* from jsonb_to_recordset($1::jsonb) as w (
      id text, project_id text, endpoint_id text, match_key text, resource_url text, description text, network text,
      chain_id bigint, asset text, payer text, recipient text, amount_atomic bigint, valid_after numeric,
      valid_before numeric, authorization_nonce text, signature text, factory text, factory_data text,
      x402_version smallint, resource_source text, payment_identifier text, traceparent text)
    where exists (
      select from projects p where p.id = w.project_id and p.deleted_at is null for key share)
      and w.id in (select id from affordable)
  ), claimed as (
    insert into payments (
      id, project_id, endpoint_id, match_key, resource_url, description, network, chain_id, asset, payer, recipient,
      amount_atomic, valid_after, valid_before, authorization_nonce, signature, factory, factory_data, claim_head,
      x402_version, resource_source, payment_identifier, traceparent)
    select w.id, w.project_id, w.endpoint_id, w.match_key, w.resource_url, w.description, w.network, w.chain_id,
           w.asset, w.payer, w.recipient, w.amount_atomic, w.valid_after, w.valid_before, w.authorization_nonce,
           w.signature, w.factory, w.factory_data, (select head_number from chain_status where chain_id = w.chain_id),
           coalesce(w.x402_version, 1), coalesce(w.resource_source, 'seller'), w.payment_identifier, w.traceparent
    from wanted w
    order by w.chain_id, w.asset, lower(w.payer), w.authorization_nonce
    on conflict do nothing
    returning id, project_id
  ), ${COUNTED}, due as (
    select id as payload_id from claimed
  ), jobs as (
    ${addJobsFrom('due', 'settle_payment', 'paymentId')}
  )
  select c.id from claimed c cross join jobs`

/**
 * Stores payment authorizations as payments, and queues their settlement. Concurrent calls with one authorization
 * create only one payment, even with different forms of the same signature. One SQL statement stores all payments
 * without a name.
 * @returns a boolean for each authorization, in the same order. True means that the function has stored the payment.
 * False means that another payment already has the authorization or the name, or that the project is deleted or has
 * reached its daily limit.
 */
export async function claimPayments(
  pool: Pool,
  claims: readonly NewClaim[],
  limits: SettlementLimits = NO_SETTLEMENT_LIMITS,
): Promise<boolean[]> {
  const records = claims.map(claimRecord)
  try {
    if (namesOf(records).length === 0) return await claim(pool, records, limits)
    return await transaction(pool, (client) => claimRecords(client, records, limits))
  } catch (error) {
    // If a concurrent payment has used up the project's daily limit, a batch of several payments throws the error. The
    // batcher then tries each payment separately.
    if (claims.length > 1 || !isBudgetRace(error)) throw error
    return [false]
  }
}

/**
 * Stores payment authorizations, given as JSON, as payments in the caller's transaction. The function first locks the
 * payment identifiers, so that no two payments get the same one.
 */
export async function claimRecords(
  client: Client,
  records: readonly ClaimRecord[],
  limits: SettlementLimits,
): Promise<boolean[]> {
  const names = namesOf(records)
  if (names.length > 0) {
    await client.query({ name: 'lock-payment-names', text: LOCK_NAMES, values: [names] })
  }
  return claim(client, records, limits)
}

const namesOf = (records: readonly ClaimRecord[]): string[] =>
  records.flatMap(({ project_id: projectId, payer, payment_identifier: name }) =>
    name === null ? [] : [`${projectId} ${payer.toLowerCase()} ${name}`],
  )

async function claim(
  db: Queryable,
  records: readonly ClaimRecord[],
  limits: SettlementLimits,
): Promise<boolean[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'claim-payments',
    text: CLAIM,
    values: [JSON.stringify(records), limits.dailySettlements, limits.dailyGas],
  })
  const made = new Set(rows.map((row) => row.id))
  return records.map((record) => made.has(record.id))
}

/** Describes a seller's request to redeem a settled payment. A payment can be redeemed only once. */
export type WantedGrant = {
  paymentId: string
  projectId: string
  /**
   * Holds the idempotency key of the seller's redeem call, with the hash of the call. Null means that the caller gave no
   * idempotency key.
   */
  key: { key: string; hash: Buffer } | null
  /** Holds the response of the redeem call, as JSON text. */
  result: string
}

/** Holds the SQL condition for an expired idempotency key `k`, which a new call may use again. */
const IS_OLD_KEY = `k.created_at < clock_timestamp() - ${keyLifetime('k.project_id')}`

const TAKE_GRANTS = `
  with wanted as (
    select * from unnest($1::int[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[])
      w (n, id, project, key, result, hash)
  ), free as (
    select p.id from payments p join wanted w on w.id = p.id and w.project = p.project_id
    where p.state = 'settled' and p.granted_at is null
    order by p.id for no key update of p
  ), granted as (
    update payments p set granted_at = clock_timestamp(), grant_key = w.key
    from wanted w where p.id = w.id and p.id in (select id from free)
    returning w.n, w.project, w.key, w.result, w.hash
  ), kept as (
    -- If a redeem call looked worthless by its payment header alone, it has reserved no idempotency key.
    insert into idempotency_keys as k (project_id, operation, key, request_hash, result)
    select distinct on (g.project, g.key) g.project, 'redeem', g.key, g.hash, g.result from granted g
    where g.key is not null order by g.project, g.key
    on conflict (project_id, operation, key) do update set
      result = excluded.result, request_hash = excluded.request_hash,
      created_at = case when ${IS_OLD_KEY} then clock_timestamp() else k.created_at end
      where k.request_hash = excluded.request_hash or ${IS_OLD_KEY}
  )
  select n from granted`

/**
 * Marks settled payments as redeemed in one SQL statement, and stores the responses under the callers' idempotency
 * keys.
 * @returns a boolean for each request, in the order of the requests. True means that the request has redeemed the
 * payment. False means that an earlier request has done so, or that the payment is not settled.
 */
export async function takeGrants(
  db: Queryable,
  grants: readonly WantedGrant[],
): Promise<boolean[]> {
  const { rows } = await db.query<{ n: number }>({
    name: 'take-grants',
    text: TAKE_GRANTS,
    values: [
      grants.map((_, n) => n),
      grants.map((one) => one.paymentId),
      grants.map((one) => one.projectId),
      grants.map((one) => one.key?.key ?? null),
      grants.map((one) => one.result),
      grants.map((one) => one.key?.hash ?? null),
    ],
  })
  const taken = new Set(rows.map((row) => row.n))
  return grants.map((_, n) => taken.has(n))
}
