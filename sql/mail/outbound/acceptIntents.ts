import { newThreadId } from '../../../shared/ids.ts'
import { keyLifetime } from '../../account/idempotency.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { writeOwnEvents } from '../calendar/ownEvents.ts'
import { type Admitted, admitIntents } from './admitIntents.ts'
import { beginQuotas, eventChangesOf, lockIntents } from './lockIntents.ts'
import { OPERATION, type SendIntent, type SendOutcome } from './sendIntents.ts'
import { writeIntents } from './writeIntents.ts'

/**
 * Accepts send intents (API requests to send or reply) in one transaction, so that a message and its stored response
 * commit together. The function locks the rows that the intents need, decides which intents are admitted, and stores
 * their idempotency keys and mails. One transaction for many intents is faster than one for each. PostgreSQL commits
 * with NOTIFY wait for each other, but a commit of 100 intents takes little more time than a commit of one.
 * @param dailyLimit is the number of recipients to whom a project may send mail in a UTC day. Null means no limit.
 * @returns one result for each send intent, in the order of the send intents.
 */
export async function acceptIntents(
  pool: Pool,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<SendOutcome[]> {
  for (;;) {
    const outcomes = await transaction(pool, (db) => acceptIn(db, intents, dailyLimit))
    if (outcomes !== null) return outcomes
    await beginQuotas(pool, intents, dailyLimit!)
  }
}

/**
 * Accepts send intents (API requests to send or reply) in the caller's transaction.
 * @returns null if a project has no quota row (the count of its recipients) for the current UTC day yet. The function
 * then stores nothing.
 */
async function acceptIn(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<SendOutcome[] | null> {
  const locked = await lockIntents(db, intents, dailyLimit)
  if (locked === null) return null
  const decisions = admitIntents(intents, locked, { dailyLimit, newThread: newThreadId })
  const admitted = decisions.filter((one) => one.kind === 'admitted')
  const taken = await takeKeys(db, admitted, locked.now)
  const accepted = admitted.filter(({ intent }) => taken(intent))
  await writeOwnEvents(db, eventChangesOf(accepted.map(({ intent }) => intent)))
  if (accepted.length > 0) await writeIntents(db, accepted, { now: locked.now, dailyLimit })
  return decisions.map((one) => {
    if (one.kind !== 'admitted') return one
    if (!taken(one.intent)) return { kind: 'repeat' }
    const { threadId, createdAt, status } = one
    return { kind: 'accepted', threadId, createdAt, status }
  })
}

/**
 * Stores the idempotency keys of admitted send intents (API requests to send or reply), with their responses. If a
 * concurrent HTTP request is storing the same key, the function waits for it.
 * @returns a function that tells whether the service may store a send intent (an API request to send or reply). The
 * service may store an intent whose idempotency key was free, or that has no idempotency key.
 */
async function takeKeys(
  db: Queryable,
  admitted: readonly Admitted[],
  now: Date,
): Promise<(intent: SendIntent) => boolean> {
  const keyed = admitted.flatMap(({ intent, threadId, createdAt, status }) => {
    const { projectId, key, answer } = intent
    if (key === null) return []
    const result = JSON.stringify({ threadId, createdAt, status, answer })
    return [{ projectId, ...key, result }]
  })
  if (keyed.length === 0) return () => true
  const { rows } = await db.query<{ project_id: string; key: string }>({
    name: 'take-send-keys',
    text: `
      insert into idempotency_keys as k (project_id, operation, key, request_hash, result, created_at)
      select project_id, '${OPERATION}', key, decode(hash, 'hex'), result, $5
      from unnest($1::text[], $2::text[], $3::text[], $4::text[]) g (project_id, key, hash, result)
      order by project_id, key
      on conflict (project_id, operation, key) do update
        set request_hash = excluded.request_hash, result = excluded.result, created_at = excluded.created_at
        where k.created_at < excluded.created_at - ${keyLifetime('k.project_id')}
      returning project_id, key`,
    values: [
      keyed.map(({ projectId }) => projectId),
      keyed.map(({ name }) => name),
      keyed.map(({ requestHash }) => requestHash.toString('hex')),
      keyed.map(({ result }) => result),
      now,
    ],
  })
  const taken = new Set(rows.map(({ project_id, key }) => JSON.stringify([project_id, key])))
  return ({ projectId, key }) => key === null || taken.has(JSON.stringify([projectId, key.name]))
}
