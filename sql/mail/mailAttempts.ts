import type { MessageEventData } from '../../shared/events/events.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { recordEvents } from '../events/events.ts'
import { addJob, addJobsFrom } from '../queue/jobs.ts'
import { suppress } from './suppressions.ts'

/** The outcome of one recipient in an attempt. */
export type RecipientOutcome = {
  address: string
  state: 'sent' | 'deferred' | 'failed'
  /** The answer of the other host, or the network error; null: sent. */
  error: string | null
  /** The other host answered "no such mailbox". */
  noSuchMailbox?: true
}

/** An outcome to record. `postponed`: the recipient got no turn and no attempt. */
export type RecordedOutcome =
  | (RecipientOutcome & {
      /** The next attempt of a deferred recipient; null: not deferred. */
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
  /** Recipients in inboxes of this service: delivered in this transaction. */
  localInboxes: string[]
  /** This is the last part of the attempt. */
  last: boolean
}

/**
 * Records an attempt or a finished part of it in one transaction: recipients' outcomes, deliveries to our own inboxes,
 * the message's status, and with the last part the job of the next attempt.
 * @returns false: another run of the job recorded it first; nothing changed.
 */
export async function recordAttempt(pool: Pool, outcome: AttemptOutcome): Promise<boolean> {
  const { messageRow, recipients } = outcome
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query({
      name: 'lock-attempt',
      text: `select from outbound_mails where message_row = $1 and attempt = $2 and state in ('queued', 'deferred')
             for no key update`,
      values: [messageRow, outcome.attempt],
    })
    if (rowCount === 0) return false
    await db.query({
      name: 'record-recipients',
      // A bounce can come before this update: its state stays.
      text: `
        update outbound_recipients r set
          state = case o.state when 'postponed' then r.state else o.state end,
          error = case o.state when 'postponed' then r.error else o.error end,
          attempts = r.attempts + case o.state when 'postponed' then 0 else 1 end,
          next_attempt_at = coalesce(o.next_attempt_at, r.next_attempt_at), updated_at = clock_timestamp()
        from unnest($2::text[], $3::text[], $4::text[], $5::timestamptz[]) o (address, state, error, next_attempt_at)
        where r.message_row = $1 and r.address = o.address and r.state in ('queued', 'deferred')`,
      values: [
        messageRow,
        recipients.map(({ address }) => address),
        recipients.map(({ state }) => state),
        recipients.map(({ error }) => error),
        recipients.map(({ nextAttemptAt }) => nextAttemptAt),
      ],
    })
    await suppress(
      db,
      outcome,
      recipients.flatMap((recipient) =>
        'noSuchMailbox' in recipient
          ? [{ address: recipient.address, reason: 'rejection', detail: recipient.error }]
          : [],
      ),
    )
    await deliverLocally(db, outcome)
    await updateDeliveryStatus(db, messageRow)
    if (outcome.last) await endRun(db, messageRow)
    return true
  })
}

/** Queues the next attempt at the earliest time of a pending recipient; without one the outbound mail is done. */
async function endRun(db: Queryable, messageRow: string): Promise<void> {
  const { rows } = await db.query<{ next: Date | null }>({
    name: 'end-run',
    text: `
      with pending as (
        select min(next_attempt_at) as next from outbound_recipients
        where message_row = $1 and state in ('queued', 'deferred')
      )
      update outbound_mails o set state = case when p.next is null then 'done' else 'deferred' end,
        next_attempt_at = coalesce(p.next, o.next_attempt_at)
      from pending p where o.message_row = $1
      returning p.next`,
    values: [messageRow],
  })
  const next = rows[0]?.next ?? null
  if (next === null) return await announceEnd(db, messageRow)
  await addJob(db, {
    task: 'send_mail',
    payload: { messageRow },
    key: `send_mail:${messageRow}`,
    runAt: next,
  })
}

/** Reads the event data of a message. */
export const MESSAGE_EVENT = `
  select m.project_id, m.delivery_status as status, json_build_object(
    'messageId', m.message_id, 'threadId', t.id, 'inboxId', p.email_address, 'from', m.from_addresses,
    'to', m.to_addresses, 'subject', m.subject, 'labels', m.labels) as data
  from messages m join threads t on t.row = m.thread_row join projects p on p.id = m.project_id
  where m.row = $1`

/** Records the event of a finished outbound mail. */
async function announceEnd(db: Queryable, messageRow: string): Promise<void> {
  const { rows } = await db.query<{ project_id: string; status: string; data: MessageEventData }>({
    name: 'announce-end',
    text: MESSAGE_EVENT,
    values: [messageRow],
  })
  const message = rows[0]!
  // The bounce has recorded its own event.
  if (message.status === 'bounced') return
  const type = message.status === 'sent' ? 'message.sent' : 'message.failed'
  await recordEvents(db, [{ projectId: message.project_id, type, data: message.data }])
}

async function deliverLocally(db: Queryable, outcome: AttemptOutcome): Promise<void> {
  if (outcome.localInboxes.length === 0) return
  await db.query({
    name: 'deliver-locally',
    text: `
      with arrived as (
        insert into inbound_mails (raw_id, project_id, envelope_from, envelope_to, received_at)
        select $1, p.id, $2, p.email_address, clock_timestamp() from projects p
        where p.email_address = any ($3) and p.deleted_at is null
        on conflict (raw_id, project_id) do nothing
        returning id::text as payload_id
      )
      ${addJobsFrom('arrived', 'parse_inbound', 'inboundId')}`,
    values: [outcome.rawId, outcome.envelopeFrom, outcome.localInboxes],
  })
}

/** Sets the status of a message to its worst recipient's: bounced, then failed, deferred, queued, sent. */
export async function updateDeliveryStatus(db: Queryable, messageRow: string): Promise<void> {
  await db.query({
    name: 'update-delivery-status',
    text: `
      update messages m set delivery_status = r.state, delivery_error = r.error
      from (
        select state, case when error is not null then address || ': ' || error end as error
        from outbound_recipients where message_row = $1
        order by array_position(array['bounced', 'failed', 'deferred', 'queued', 'sent'], state), address
        limit 1
      ) r where m.row = $1`,
    values: [messageRow],
  })
}
