import type { PaymentHeader } from '../../../shared/purse/paymentHeader.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'

type TrialState = 'asking' | 'asked' | 'paying' | 'paid' | 'failed'

/** Describes the trial of an endpoint. A trial is a test request that shows the endpoint's response to a buyer. */
export type EndpointTrial = {
  state: TrialState
  buy: boolean
  /**
   * Holds the x402 challenge of the endpoint. It contains x402Version and accepts, and in version 2 also resource and
   * extensions.
   */
  challenge: Record<string, unknown> | null
  /** Holds the HTTP status of the endpoint's last response. */
  status: number | null
  body: string | null
  detail: string | null
  createdAt: Date
  endedAt: Date | null
}

/** Limits the number of characters of the response body that the service stores for an endpoint's trial. */
export const TRIAL_BODY_MAX = 16_384
/** Limits the number of characters of the challenge (as JSON) that the service stores for an endpoint's trial. */
export const TRIAL_CHALLENGE_MAX = 40_000

/**
 * Sets the time after which an unfinished trial (test request) of an endpoint counts as lost. A worker process waits at
 * most 20 s for the challenge and 30 s for the payment.
 */
const LOST_AFTER = '90 seconds'

const SHOWN = `state, buy, challenge, status, body, detail, created_at as "createdAt", ended_at as "endedAt"`

/** Returns the last trial (test request) of an endpoint. @returns null if nobody has tried the endpoint. */
export async function findTrial(db: Queryable, endpointId: string): Promise<EndpointTrial | null> {
  const { rows } = await db.query<EndpointTrial>({
    name: 'find-endpoint-trial',
    text: `select ${SHOWN} from endpoint_trials where endpoint_id = $1`,
    values: [endpointId],
  })
  return rows[0] ?? null
}

/**
 * Starts a new trial (test request) of an endpoint, which replaces the record of the last trial. @returns null if the
 * last trial of the endpoint is still running.
 */
export function startTrial(
  pool: Pool,
  trial: { id: string; endpointId: string; projectId: string; buy: boolean },
): Promise<EndpointTrial | null> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<EndpointTrial>({
      name: 'start-endpoint-trial',
      text: `insert into endpoint_trials as t (endpoint_id, id, project_id, buy) values ($1, $2, $3, $4)
             on conflict (endpoint_id) do update set
               id = excluded.id, buy = excluded.buy, state = 'asking', method = null, challenge = null,
               header_name = null, header_value = null, status = null, body = null, detail = null,
               created_at = clock_timestamp(), ended_at = null
             where t.ended_at is not null or t.created_at < clock_timestamp() - interval '${LOST_AFTER}'
             returning ${SHOWN}`,
      values: [trial.endpointId, trial.id, trial.projectId, trial.buy],
    })
    if (rows[0] === undefined) return null
    await queueTrial(db, trial.id)
    return rows[0]
  })
}

/** Queues the job that runs the trial (test request) of an endpoint. */
export const queueTrial = (db: Queryable, trialId: string, inMs?: number): Promise<void> =>
  addJob(db, {
    task: 'try_endpoint',
    payload: { trialId },
    key: `try_endpoint:${trialId}`,
    ...(inMs === undefined ? {} : { inMs }),
  })

/**
 * Describes an unfinished trial of an endpoint, with the data that the worker process needs. The field `payment` holds
 * a payment that an earlier attempt of the job has signed.
 */
export type DueTrial = {
  id: string
  projectId: string
  url: string
  buy: boolean
  method: 'GET' | 'POST'
  payment: PaymentHeader | null
}

/**
 * Finds an endpoint's unfinished trial (test request) by the id of the trial. @returns null if the trial has ended or
 * was replaced, or if the endpoint is deleted.
 */
export async function findDueTrial(db: Queryable, id: string): Promise<DueTrial | null> {
  const { rows } = await db.query<
    Omit<DueTrial, 'payment'> & { header_name: string | null; header_value: string | null }
  >({
    name: 'find-due-endpoint-trial',
    text: `select t.id, t.project_id as "projectId", e.url_pattern as url, t.buy, coalesce(t.method, 'GET') as method,
                  t.header_name, t.header_value
           from endpoint_trials t join seller_endpoints e on e.id = t.endpoint_id
           where t.id = $1 and t.ended_at is null and e.deleted_at is null`,
    values: [id],
  })
  const [row] = rows
  if (row === undefined) return null
  const { header_name: name, header_value: value, ...due } = row
  return { ...due, payment: name === null || value === null ? null : { name, value } }
}

/**
 * Stores the payment that an endpoint's trial (test request) will send, unless the trial already has a stored payment.
 * @returns the stored payment of the trial. Null means that the endpoint's trial has ended.
 */
export async function storePayment(
  db: Queryable,
  trial: { id: string; method: string; challenge: object; payment: PaymentHeader },
): Promise<PaymentHeader | null> {
  const { rows } = await db.query<PaymentHeader>({
    name: 'store-endpoint-trial-payment',
    text: `update endpoint_trials set state = 'paying', method = $2, challenge = coalesce(challenge, $3::json),
             header_name = coalesce(header_name, $4), header_value = coalesce(header_value, $5)
           where id = $1 and ended_at is null returning header_name as name, header_value as value`,
    values: [
      ...[trial.id, trial.method, JSON.stringify(trial.challenge)],
      ...[trial.payment.name, trial.payment.value],
    ],
  })
  return rows[0] ?? null
}

/** Ends the trial (test request) of an endpoint. If the trial has already ended, the function changes nothing. */
export async function endTrial(
  db: Queryable,
  id: string,
  end: {
    state: 'asked' | 'paid' | 'failed'
    detail?: string
    challenge?: object
    status?: number
    body?: string
  },
): Promise<void> {
  await db.query({
    name: 'end-endpoint-trial',
    text: `update endpoint_trials set state = $2, detail = $3, challenge = coalesce(challenge, $4::json), status = $5,
             body = $6, ended_at = clock_timestamp()
           where id = $1 and ended_at is null`,
    values: [
      ...[id, end.state, end.detail?.slice(0, 500) ?? null],
      end.challenge === undefined ? null : JSON.stringify(end.challenge),
      ...[end.status ?? null, end.body ?? null],
    ],
  })
}
