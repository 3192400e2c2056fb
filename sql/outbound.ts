import type { MessageEventData } from '../shared/events.ts'
import { type Pool, type Queryable, transaction } from './db.ts'
import { recordEvents } from './events.ts'
import { addJob, addJobsFrom } from './jobs.ts'
import { readRawMail } from './rawMails.ts'

/** A sent message on its way, as the worker sees it. */
export type OutboundMail = {
  messageRow: string
  projectId: string
  /** This attempt's number; 1 is the first. */
  attempt: number
  acceptedAt: Date
  rawId: string | null
  messageId: string
  fromAddress: string
  fromName: string
  to: string[]
  cc: string[]
  subject: string
  text: string
  html: string | null
  inReplyTo: string[]
  references: string[]
  createdAt: Date
  /** Addresses that have neither got it nor refused it for good. */
  pending: string[]
}

type OutboundRow = {
  project_id: string
  attempt: number
  accepted_at: Date
  raw_id: string | null
  message_id: string
  from_addresses: string[]
  name: string
  to_addresses: string[]
  cc_addresses: string[]
  subject: string
  text_body: string
  html_body: string | null
  in_reply_to: string[]
  reference_ids: string[]
  created_at: Date
  pending: string[]
}

/**
 * Begins the next attempt to send a message: counts it and reads what is needed. Null when there is nothing to do: sent,
 * given up, deleted, or not due yet (a job that ran again after its attempt had been recorded).
 */
export async function beginAttempt(
  db: Queryable,
  messageRow: string,
): Promise<OutboundMail | null> {
  const { rows } = await db.query<OutboundRow>({
    name: 'begin-attempt',
    text: `
      update outbound_mails o set attempt = o.attempt + 1
      from messages m join projects p on p.id = m.project_id
      where o.message_row = $1 and o.state <> 'done' and m.row = o.message_row and p.deleted_at is null
        and o.next_attempt_at <= clock_timestamp() + interval '1 second'
      returning o.project_id, o.attempt, o.accepted_at, m.raw_id, m.message_id, m.from_addresses, p.name,
        m.to_addresses, m.cc_addresses, m.subject, m.text_body, m.html_body, m.in_reply_to, m.reference_ids,
        m.created_at,
        array(select r.address from outbound_recipients r
              where r.message_row = o.message_row and r.state in ('queued', 'deferred')
              order by r.address) as pending`,
    values: [messageRow],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    messageRow,
    projectId: row.project_id,
    attempt: row.attempt,
    acceptedAt: row.accepted_at,
    rawId: row.raw_id,
    messageId: row.message_id,
    fromAddress: row.from_addresses[0]!,
    fromName: row.name,
    to: row.to_addresses,
    cc: row.cc_addresses,
    subject: row.subject,
    text: row.text_body,
    html: row.html_body,
    inReplyTo: row.in_reply_to,
    references: row.reference_ids,
    createdAt: row.created_at,
    pending: row.pending,
  }
}

/**
 * Keeps the composed bytes of a message before they are first sent, so that every attempt sends the same ones.
 * @returns the raw mail's id and the bytes to send: those stored first, if another run was quicker.
 */
export async function keepComposed(
  pool: Pool,
  { messageRow, sourceKey, bytes }: { messageRow: string; sourceKey: string; bytes: Buffer },
): Promise<{ rawId: string; bytes: Buffer }> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ raw_id: string | null }>(
      'select raw_id from messages where row = $1 for update',
      [messageRow],
    )
    const kept = rows[0]?.raw_id ?? null
    if (kept !== null) return { rawId: kept, bytes: await readRawMail(db, kept) }
    const inserted = await db.query<{ id: string }>(
      'insert into raw_mails (source_key, bytes) values ($1, $2) returning id',
      [sourceKey, bytes],
    )
    const rawId = inserted.rows[0]!.id
    await db.query('update messages set raw_id = $2 where row = $1', [messageRow, rawId])
    return { rawId, bytes }
  })
}

/** What became of one recipient in an attempt. */
export type RecipientOutcome = {
  address: string
  state: 'sent' | 'deferred' | 'failed'
  /** The answer of the other side, or what kept us from reaching it; null when sent. */
  error: string | null
}

export type AttemptOutcome = {
  messageRow: string
  attempt: number
  rawId: string
  envelopeFrom: string
  recipients: RecipientOutcome[]
  /** Recipients whose inbox is ours: delivered in this transaction. */
  localInboxes: string[]
  /** When to try again; null when nobody is left to try. */
  nextAttemptAt: Date | null
}

/**
 * Records an attempt: every recipient's outcome, delivery to our own inboxes, the message's status, and the next
 * attempt's job, in one transaction.
 * @returns false when another run of the same job recorded it first; then nothing changed.
 */
export async function recordAttempt(pool: Pool, outcome: AttemptOutcome): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update outbound_mails set state = $3, next_attempt_at = coalesce($4, next_attempt_at)
       where message_row = $1 and attempt = $2 and state <> 'done'`,
      [
        outcome.messageRow,
        outcome.attempt,
        outcome.nextAttemptAt === null ? 'done' : 'deferred',
        outcome.nextAttemptAt,
      ],
    )
    if (rowCount === 0) return false
    await db.query(
      `update outbound_recipients r set state = o.state, error = o.error, updated_at = clock_timestamp()
       from unnest($2::text[], $3::text[], $4::text[]) o (address, state, error)
       where r.message_row = $1 and r.address = o.address`,
      [
        outcome.messageRow,
        outcome.recipients.map((recipient) => recipient.address),
        outcome.recipients.map((recipient) => recipient.state),
        outcome.recipients.map((recipient) => recipient.error),
      ],
    )
    await deliverLocally(db, outcome)
    await updateDeliveryStatus(db, outcome.messageRow)
    if (outcome.nextAttemptAt !== null) {
      await addJob(db, {
        task: 'send_mail',
        payload: { messageRow: outcome.messageRow },
        key: `send_mail:${outcome.messageRow}`,
        runAt: outcome.nextAttemptAt,
      })
    } else await announceEnd(db, outcome.messageRow)
    return true
  })
}

/** Tells of a message whose sending is over. */
async function announceEnd(db: Queryable, messageRow: string): Promise<void> {
  const { rows } = await db.query<{ project_id: string; status: string; data: MessageEventData }>({
    name: 'announce-end',
    text: `
      select m.project_id, m.delivery_status as status, json_build_object(
        'messageId', m.message_id, 'threadId', t.id, 'inboxId', p.email_address, 'from', m.from_addresses,
        'to', m.to_addresses, 'subject', m.subject, 'labels', m.labels) as data
      from messages m join threads t on t.row = m.thread_row join projects p on p.id = m.project_id
      where m.row = $1`,
    values: [messageRow],
  })
  const message = rows[0]
  if (message === undefined) return
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

/** The message's status is its worst recipient's: failed, then deferred, then queued, then sent. */
async function updateDeliveryStatus(db: Queryable, messageRow: string): Promise<void> {
  await db.query({
    name: 'update-delivery-status',
    text: `
      update messages m set delivery_status = r.state, delivery_error = r.error
      from (
        select state, case when error is not null then address || ': ' || error end as error
        from outbound_recipients where message_row = $1
        order by array_position(array['failed', 'deferred', 'queued', 'sent'], state), address
        limit 1
      ) r where m.row = $1`,
    values: [messageRow],
  })
}
