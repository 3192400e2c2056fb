import { type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import { addJob, addJobsFrom, hasNoJob } from '../../queue/jobs.ts'
import { readMessageEvents } from '../messages/messageEvents.ts'
import { suppress } from './suppressions.ts'

/** Describes the outcome of a delivery attempt for one recipient. */
export type RecipientOutcome = {
  address: string
  state: 'sent' | 'deferred' | 'failed'
  /**
   * Holds the error reply of the receiving mail host, or the network error. Null means that the mail was sent to the
   * recipient.
   */
  error: string | null
  /** Holds the id that the mail relay gave to the recipient's copy of the message. */
  relayId?: string
  /** Tells whether the receiving mail host replied "no such mailbox". */
  noSuchMailbox?: true
}

/**
 * Describes the recorded result of a delivery attempt for one recipient. The state `postponed` means that a job must
 * wait before it may send the mail. The service then sent nothing to the recipient.
 */
export type RecordedOutcome =
  | (RecipientOutcome & {
      /**
       * Holds the time of the next delivery attempt for a deferred recipient. Null means that the recipient is not
       * deferred.
       */
      nextAttemptAt: Date | null
    })
  | { address: string; state: 'postponed'; error: null; nextAttemptAt: Date }

export type AttemptOutcome = {
  messageRow: string
  projectId: string
  attempt: number
  rawId: string | null
  envelopeFrom: string
  recipients: RecordedOutcome[]
  /**
   * Lists the recipients that are inboxes of this service. The transaction that records the delivery attempt also
   * delivers the mail to them.
   */
  localInboxes: string[]
  /**
   * Tells whether this result is the last part of the delivery attempt. The service may record the results of one
   * attempt in several parts.
   */
  last: boolean
}

/**
 * Records delivery attempts, or finished parts of them, in one transaction. The transaction records the recipients'
 * results, delivers mail to inboxes of this service, and updates the status of the messages. With the last part of an
 * attempt, it also queues the job of the next attempt. It locks the event stream of a project only once for all its
 * mails. One commit for many mails is faster, because processes wait for each other's commits.
 * @param outcomes holds at most one outcome for each message.
 * @returns a boolean for each result, in the order of `outcomes`. False means that another run of the sending job began
 * after this attempt, or recorded the result first. If another run has begun, the function still records the recipients
 * that have received the mail. The other run then does not mail them again.
 */
export async function recordMailAttempts(
  pool: Pool,
  outcomes: readonly AttemptOutcome[],
): Promise<boolean[]> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ message_row: string; attempt: number }>({
      name: 'lock-attempts',
      text: `with locked as materialized (
               -- The query selects only by the primary key, because with a backlog of mail PostgreSQL would read a
               -- whole index of due mail.
               select message_row, attempt, state from outbound_mails
               where message_row = any ($1::bigint[]) order by message_row for no key update)
             select message_row, attempt from locked where state in ('queued', 'deferred')`,
      values: [outcomes.map(({ messageRow }) => messageRow)],
    })
    const attempts = new Map(rows.map(({ message_row, attempt }) => [message_row, attempt]))
    const isCurrent = ({ messageRow, attempt }: AttemptOutcome) =>
      attempts.get(messageRow) === attempt
    const changes = outcomes.flatMap((outcome) => {
      if (isCurrent(outcome)) return [outcome]
      return attempts.has(outcome.messageRow) ? reachedLate(outcome) : []
    })
    if (changes.length > 0) await record(db, changes)
    return outcomes.map(isCurrent)
  })
}

/**
 * Returns the part of a result that stays valid after another delivery attempt has begun: the recipients that have
 * received the mail. If the result names inboxes of this service, the list is empty, because only a recorded result
 * delivers mail to inboxes.
 */
function reachedLate(outcome: AttemptOutcome): AttemptOutcome[] {
  if (outcome.localInboxes.length > 0) return []
  const recipients = outcome.recipients.filter(({ state }) => state === 'sent')
  return recipients.length === 0 ? [] : [{ ...outcome, recipients, last: false }]
}

async function record(db: Queryable, outcomes: readonly AttemptOutcome[]): Promise<void> {
  const recipients = outcomes.flatMap(({ messageRow, recipients: ofMail }) =>
    ofMail.map((recipient) => ({ messageRow, ...recipient })),
  )
  await db.query({
    name: 'record-recipients',
    // The SQL keeps the state `bounced`, because another transaction can record a bounce before this update. It takes the
    // pause until the next attempt from the clock of this process, and the moment from the clock of the database, which
    // decides when a mail is due.
    text: `
      update outbound_recipients r set
        state = case o.state when 'postponed' then r.state else o.state end,
        error = case o.state when 'postponed' then r.error else o.error end,
        attempts = r.attempts + case o.state when 'postponed' then 0 else 1 end,
        next_attempt_at = coalesce(statement_timestamp() + (o.next_attempt_at - $7::timestamptz), r.next_attempt_at),
        relay_id = coalesce(o.relay_id, r.relay_id),
        updated_at = clock_timestamp()
      from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::text[])
        o (message_row, address, state, error, next_attempt_at, relay_id)
      where r.message_row = any ($1::bigint[]) and r.message_row = o.message_row and r.address = o.address
        and r.state in ('queued', 'deferred')`,
    values: [
      recipients.map(({ messageRow }) => messageRow),
      recipients.map(({ address }) => address),
      recipients.map(({ state }) => state),
      recipients.map(({ error }) => error),
      recipients.map(({ nextAttemptAt }) => nextAttemptAt),
      recipients.map((recipient) => ('relayId' in recipient ? recipient.relayId : null)),
      new Date(),
    ],
  })
  for (const outcome of outcomes) {
    const missing = outcome.recipients.flatMap((recipient) =>
      'noSuchMailbox' in recipient
        ? [{ address: recipient.address, reason: 'rejection' as const, detail: recipient.error }]
        : [],
    )
    await suppress(db, outcome, missing)
    await deliverLocally(db, outcome)
  }
  await updateDeliveryStatus(
    db,
    outcomes.map(({ messageRow }) => messageRow),
  )
  const ended = outcomes.filter(({ last }) => last).map(({ messageRow }) => messageRow)
  if (ended.length > 0) await endRuns(db, ended)
}

/**
 * Queues the next delivery attempt of each outbound mail for the earliest `next_attempt_at` of its pending recipients.
 * A mail without a pending recipient is marked as done.
 */
async function endRuns(db: Queryable, messageRows: readonly string[]): Promise<void> {
  const { rows } = await db.query<{ message_row: string; next: Date | null }>({
    name: 'end-runs',
    text: `
      with pending as (
        select w.message_row, (
          select min(next_attempt_at) from outbound_recipients r
          where r.message_row = w.message_row and r.state in ('queued', 'deferred')) as next
        from unnest($1::bigint[]) w (message_row)
      )
      update outbound_mails o set state = case when p.next is null then 'done' else 'deferred' end,
        next_attempt_at = coalesce(p.next, o.next_attempt_at)
      from pending p where o.message_row = p.message_row
      returning o.message_row, p.next`,
    values: [messageRows],
  })
  for (const { message_row: messageRow, next } of rows) {
    if (next === null) continue
    const key = `send_mail:${messageRow}`
    await addJob(db, { task: 'send_mail', payload: { messageRow }, key, runAt: next })
  }
  await announceEnds(
    db,
    rows.filter(({ next }) => next === null).map(({ message_row }) => message_row),
  )
}

/**
 * Records the events of outbound mails that have no pending recipient any more. Callers call `announceEnds` last in a
 * transaction, because it locks the event streams of the projects.
 */
async function announceEnds(db: Queryable, messageRows: readonly string[]): Promise<void> {
  if (messageRows.length === 0) return
  const ended = await readMessageEvents(db, messageRows)
  await recordEvents(
    db,
    ended
      // The end of a bounced mail needs no webhook event, because the bounce has already caused one.
      .filter(({ status }) => status !== 'bounced')
      .map(({ status, ...event }) => ({
        ...event,
        type: status === 'sent' ? 'message.sent' : 'message.failed',
      })),
  )
}

async function deliverLocally(db: Queryable, outcome: AttemptOutcome): Promise<void> {
  if (outcome.localInboxes.length === 0) return
  await db.query({
    name: 'deliver-locally',
    text: `
      with arrived as (
        insert into inbound_mails (raw_id, project_id, envelope_from, envelope_to, received_at, traceparent)
        select $1, p.id, $2, p.email_address, clock_timestamp(), (select traceparent from outbound_mails where message_row = $4)
        from projects p
        where p.email_address = any ($3) and p.deleted_at is null
        on conflict (raw_id, project_id) do nothing
        returning id::text as payload_id
      )
      ${addJobsFrom('arrived', 'parse_inbound', 'inboundId')}`,
    values: [outcome.rawId, outcome.envelopeFrom, outcome.localInboxes, outcome.messageRow],
  })
}

/**
 * Sets the status of messages to the worst status of their recipients, in this order: bounced, failed, deferred,
 * queued, sent.
 */
export async function updateDeliveryStatus(
  db: Queryable,
  messageRows: readonly string[],
): Promise<void> {
  await db.query({
    name: 'update-delivery-status',
    text: `
      update messages m set delivery_status = r.state, delivery_error = r.error
      from unnest($1::bigint[]) w (message_row) cross join lateral (
        select state, case when error is not null then address || ': ' || error end as error
        from outbound_recipients where message_row = w.message_row
        order by array_position(array['bounced', 'failed', 'deferred', 'queued', 'sent'], state), address
        limit 1
      ) r where m.row = w.message_row`,
    values: [messageRows],
  })
}

const LOST_AFTER = '60 seconds'
const LOST_BATCH = 100

/**
 * Queues overdue mail that has no job, or a job that failed for good. A job can be missing after an operator deleted
 * it. A job fails for good if, for example, a process lacks a master key for days.
 * @returns the number of mails that the function queued again.
 */
export function requeueLostMail(pool: Pool): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows: overdue } = await db.query<{ message_row: string }>(
      `select o.message_row from outbound_mails o
       where o.state in ('queued', 'deferred')
         and o.next_attempt_at < clock_timestamp() - interval '${LOST_AFTER}'
         and ${hasNoJob("'send_mail:' || o.message_row")}
       order by o.next_attempt_at limit ${LOST_BATCH} for no key update skip locked`,
    )
    // The code looks for the sending job once more, because another process may have queued the mail since the first
    // statement began. A second job would send the mail twice.
    const { rows: lost } = await db.query<{ message_row: string }>(
      `select r.message_row from unnest($1::bigint[]) r (message_row)
       where ${hasNoJob("'send_mail:' || r.message_row")}`,
      [overdue.map(({ message_row }) => message_row)],
    )
    for (const { message_row: messageRow } of lost) {
      const key = `send_mail:${messageRow}`
      await addJob(db, { task: 'send_mail', payload: { messageRow }, key })
    }
    return lost.length
  })
}
