import type { MessageEventData } from '../shared/events.ts'
import type { Unsubscribe } from '../shared/unsubscribe.ts'
import { type Pool, type Queryable, transaction } from './db.ts'
import { recordEvents } from './events.ts'
import { addJob, addJobsFrom } from './jobs.ts'
import { readRawMail } from './rawMails.ts'
import { suppress } from './suppressions.ts'

/** A sent message on its way, as the worker sees it. */
export type OutboundMail = {
  messageRow: string
  projectId: string
  /** This run's number; 1 is the first. Whoever records a run must name it. */
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
  unsubscribe: Unsubscribe | null
  createdAt: Date
  /** Those whose time has come, of the recipients that have neither got it nor refused it for good. */
  due: DueRecipient[]
  /** Those of the recipients' domains that are verified domains of ours. */
  ownDomains: string[]
}

/** A recipient and the attempts that were made for it before. */
type DueRecipient = {
  address: string
  attempts: number
  /** Since the message was accepted. */
  suppressed: boolean
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
  unsubscribe: Unsubscribe | null
  created_at: Date
  due: DueRecipient[]
  own_domains: string[]
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
        o.unsubscribe, m.created_at,
        array(select d.domain from mail_domains d where d.status = 'verified' and d.domain in (
                select lower(split_part(r.address, '@', 2)) from outbound_recipients r
                where r.message_row = o.message_row)) as own_domains,
        (select coalesce(json_agg(json_build_object(
          'address', r.address, 'attempts', r.attempts, 'suppressed', exists (
            select from suppressions s where s.project_id = o.project_id and s.address = lower(r.address))
          ) order by r.address), '[]')
         from (
           select address, attempts, next_attempt_at, min(next_attempt_at) over () as first
           from outbound_recipients where message_row = o.message_row and state in ('queued', 'deferred')
         ) r
         where r.next_attempt_at <= greatest(r.first, clock_timestamp() + interval '1 second')) as due`,
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
    unsubscribe: row.unsubscribe,
    createdAt: row.created_at,
    due: row.due,
    ownDomains: row.own_domains,
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
  /** The other side says that there is no such mailbox. */
  noSuchMailbox?: true
}

/** An outcome to be recorded; `postponed` is none: its turn had not come, and no attempt was made. */
export type RecordedOutcome =
  | (RecipientOutcome & {
      /** When to try again whoever is deferred; null for others. */
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
  /** Recipients whose inbox is ours: delivered in this transaction. */
  localInboxes: string[]
  /** Whether all that this run does is recorded with this. */
  last: boolean
}

/**
 * Records an attempt, or the part of it that has come to its end: every recipient's outcome, delivery to our own inboxes
 * and the message's status; with the last part the next attempt's job, in the same transaction.
 * @returns false when another run of the same job recorded it first; then nothing changed.
 */
export async function recordAttempt(pool: Pool, outcome: AttemptOutcome): Promise<boolean> {
  const { messageRow, recipients } = outcome
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query({
      name: 'lock-attempt',
      text: `select from outbound_mails where message_row = $1 and attempt = $2 and state <> 'done'
             for no key update`,
      values: [messageRow, outcome.attempt],
    })
    if (rowCount === 0) return false
    await db.query({
      name: 'record-recipients',
      // A bounce can be quicker than this: what it said of a recipient stands.
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

/** Queues the next run, at the time of the recipient whose turn comes first; without one the sending is over. */
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

/** What an event says of the message with this row. */
export const MESSAGE_EVENT = `
  select m.project_id, m.delivery_status as status, json_build_object(
    'messageId', m.message_id, 'threadId', t.id, 'inboxId', p.email_address, 'from', m.from_addresses,
    'to', m.to_addresses, 'subject', m.subject, 'labels', m.labels) as data
  from messages m join threads t on t.row = m.thread_row join projects p on p.id = m.project_id
  where m.row = $1`

/** Tells of a message whose sending is over. */
async function announceEnd(db: Queryable, messageRow: string): Promise<void> {
  const { rows } = await db.query<{ project_id: string; status: string; data: MessageEventData }>({
    name: 'announce-end',
    text: MESSAGE_EVENT,
    values: [messageRow],
  })
  const message = rows[0]
  if (message === undefined) return
  // A bounce that was quicker than this has been told of.
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

/** The message's status is its worst recipient's: bounced, then failed, deferred, queued, sent. */
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
