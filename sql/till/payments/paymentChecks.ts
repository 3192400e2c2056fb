import type { X402Reason } from '../../../shared/till/x402.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { deleteInBatches } from '../../deleteInBatches.ts'
import { addJob } from '../../queue/jobs.ts'
import { type ClaimRecord, claimRecord, claimRecords, type NewClaim } from '../settle/claims.ts'
import {
  isBudgetRace,
  NO_SETTLEMENT_LIMITS,
  type SettlementLimits,
} from '../settle/settlementBudgets.ts'
import { findClaim } from './payments.ts'

/**
 * Describes a check that compares a payment authorization with the chain. After the check, the service either stores
 * the authorization as a payment or only reports the result.
 */
export type NewCheck = {
  /** Holds the id of the payment check, from `newCheckId`. */
  id: string
  claim: NewClaim
  /** Tells whether the service stores the authorization as a payment after the check has passed. */
  claims: boolean
  /**
   * Holds the reason for a refusal if the payer's address has no contract code. Null means that the service has
   * verified the payer's own signature.
   */
  reasonWithoutCode: X402Reason | null
}

export type Check = Omit<NewCheck, 'claim'> & {
  claim: ClaimRecord
  state: 'open' | 'passed' | 'refused'
  reason: X402Reason | null
  /** Holds the id of the stored payment with this authorization, which may be older than the payment check. */
  paymentId: string | null
  /** Holds the milliseconds since the payment check was stored, by the clock of the database. */
  ageMs: number
}

/** Stores a payment check, and queues its job. */
export async function createCheck(pool: Pool, check: NewCheck): Promise<void> {
  await transaction(pool, async (db) => {
    await db.query(
      `insert into payment_checks (id, project_id, claim, claims, reason_without_code)
       values ($1, $2, $3, $4, $5)`,
      [
        check.id,
        check.claim.projectId,
        JSON.stringify(claimRecord(check.claim)),
        check.claims,
        check.reasonWithoutCode,
      ],
    )
    await addJob(db, {
      task: 'check_payment',
      payload: { checkId: check.id },
      key: `check_payment:${check.id}`,
    })
  })
}

type CheckRow = {
  id: string
  claim: ClaimRecord
  claims: boolean
  reason_without_code: X402Reason | null
  state: Check['state']
  reason: X402Reason | null
  payment_id: string | null
  age_ms: number
}

/** Finds one payment check by id. @returns null if the payment check does not exist. */
export async function findCheck(db: Queryable, id: string): Promise<Check | null> {
  const { rows } = await db.query<CheckRow>({
    name: 'find-check',
    text: `select id, claim, claims, reason_without_code, state, reason, payment_id,
                  extract(epoch from clock_timestamp() - created_at)::float8 * 1000 as age_ms
           from payment_checks where id = $1`,
    values: [id],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    id: row.id,
    claim: row.claim,
    claims: row.claims,
    reasonWithoutCode: row.reason_without_code,
    state: row.state,
    reason: row.reason,
    paymentId: row.payment_id,
    ageMs: row.age_ms,
  }
}

/** Ends a payment check with a refusal, so that the service does not store the authorization as a payment. */
export async function refuseCheck(db: Queryable, id: string, reason: X402Reason): Promise<void> {
  await db.query(
    `with ended as (
       update payment_checks set state = 'refused', reason = $2 where id = $1 and state = 'open' returning id)
     select pg_notify('${CHANGES_CHANNEL}', id) from ended`,
    [id, reason],
  )
}

/**
 * Ends a payment check whose result is that the chain accepts the payment. If `claims` is true and the project's daily
 * limits allow another payment, the function stores the authorization as a payment.
 */
export async function passCheck(
  pool: Pool,
  check: Check,
  limits: SettlementLimits = NO_SETTLEMENT_LIMITS,
): Promise<void> {
  try {
    await pass(pool, check, limits)
  } catch (error) {
    if (!isBudgetRace(error)) throw error
    // The first attempt to store the payment may fail because a concurrent payment has used up the project's daily
    // limit. The code then tries again, and the second attempt finds that the limit is reached.
    await pass(pool, check, limits)
  }
}

async function pass(pool: Pool, check: Check, limits: SettlementLimits): Promise<void> {
  await transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `select from payment_checks where id = $1 and state = 'open' for update`,
      [check.id],
    )
    if (rowCount === 0) return
    const paymentId = check.claims ? await claimChecked(db, check.claim, limits) : null
    await db.query(`update payment_checks set state = 'passed', payment_id = $2 where id = $1`, [
      check.id,
      paymentId,
    ])
    await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [check.id])
  })
}

async function claimChecked(
  db: Client,
  claim: ClaimRecord,
  limits: SettlementLimits,
): Promise<string | null> {
  const [made] = await claimRecords(db, [claim], limits)
  if (made) return claim.id
  const existing = await findClaim(db, {
    chainId: Number(claim.chain_id),
    asset: claim.asset,
    payer: claim.payer,
    nonce: claim.authorization_nonce,
  })
  return existing?.id ?? null
}

/** Deletes expired payment checks. */
export async function deleteStaleChecks(db: Queryable): Promise<void> {
  await deleteInBatches(
    db,
    'payment_checks',
    `created_at < statement_timestamp() - interval '1 hour'`,
  )
}
