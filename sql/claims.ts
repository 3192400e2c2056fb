import type { Address, Hex } from 'viem'
import type { NetworkName } from '../shared/usdc.ts'
import type { Queryable } from './db.ts'
import { addJobsFrom } from './jobs.ts'

/** Channel that names payments and checks whose state has changed. */
export const PAYMENTS_CHANNEL = 'payments_changed'

/** An authorization to be made ours. */
export type NewClaim = {
  /** From `newPaymentId`. */
  id: string
  projectId: string
  /** Null for a resource that is not registered (facilitator face). */
  endpointId: string | null
  matchKey: string | null
  resourceUrl: string
  description: string | null
  network: NetworkName
  chainId: number
  asset: Address
  payer: Address
  recipient: Address
  amountAtomic: bigint
  /** Unix seconds. */
  validAfter: bigint
  validBefore: bigint
  nonce: Hex
  /** The form to broadcast. */
  signature: Hex
}

/** A claim as JSON, all numbers as decimal strings. */
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
})

export type ClaimRecord = ReturnType<typeof claimRecord>

const CLAIM = `
  with wanted as (
    select w.* from jsonb_to_recordset($1::jsonb) as w (
      id text, project_id text, endpoint_id text, match_key text, resource_url text, description text, network text,
      chain_id bigint, asset text, payer text, recipient text, amount_atomic bigint, valid_after numeric,
      valid_before numeric, authorization_nonce text, signature text)
    where exists (
      select from projects p where p.id = w.project_id and p.deleted_at is null for key share)
  ), claimed as (
    insert into payments (
      id, project_id, endpoint_id, match_key, resource_url, description, network, chain_id, asset, payer, recipient,
      amount_atomic, valid_after, valid_before, authorization_nonce, signature, claim_head)
    select w.id, w.project_id, w.endpoint_id, w.match_key, w.resource_url, w.description, w.network, w.chain_id,
           w.asset, w.payer, w.recipient, w.amount_atomic, w.valid_after, w.valid_before, w.authorization_nonce,
           w.signature, (select head_number from chain_status where chain_id = w.chain_id)
    from wanted w
    order by w.chain_id, w.asset, lower(w.payer), w.authorization_nonce
    on conflict (chain_id, asset, lower(payer), authorization_nonce) do nothing
    returning id
  ), due as (
    select id as payload_id from claimed
  ), jobs as (
    ${addJobsFrom('due', 'settle_payment', 'paymentId')}
  )
  select c.id from claimed c cross join jobs`

/**
 * Claims authorizations and queues their settlement, in one statement: an authorization is one payment's, whatever the
 * form of its signature and however many ask at once.
 * @returns for each claim, in order, whether it was made; false where the authorization is a payment's already or the
 * project is gone.
 */
export async function claimPayments(
  db: Queryable,
  claims: readonly NewClaim[],
): Promise<boolean[]> {
  return claimRecords(db, claims.map(claimRecord))
}

/** {@link claimPayments} for claims that were stored as JSON. */
export async function claimRecords(
  db: Queryable,
  records: readonly ClaimRecord[],
): Promise<boolean[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'claim-payments',
    text: CLAIM,
    values: [JSON.stringify(records)],
  })
  const made = new Set(rows.map((row) => row.id))
  return records.map((record) => made.has(record.id))
}

/**
 * Takes the one grant of a settled payment; with an idempotency key, stores the answer under it in the same statement.
 * @returns false when it was taken before, or the payment is not settled (any more).
 */
export async function takeGrant(
  db: Queryable,
  grant: { paymentId: string; projectId: string; key: string | null; result: string },
): Promise<boolean> {
  const { rows } = await db.query<{ granted: boolean }>({
    name: 'take-grant',
    text: `
      with granted as (
        update payments set granted_at = clock_timestamp(), grant_key = $3
        where id = $1 and project_id = $2 and state = 'settled' and granted_at is null
        returning id
      ), kept as (
        update idempotency_keys set result = $4
        where project_id = $2 and operation = 'redeem' and key = $3 and exists (select from granted)
      )
      select exists (select from granted) as granted`,
    values: [grant.paymentId, grant.projectId, grant.key, grant.result],
  })
  return rows[0]!.granted
}
