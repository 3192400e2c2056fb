import { randomInt } from 'node:crypto'
import { newThreadId } from '../../shared/ids.ts'
import type { Authentication } from '../../shared/mail/authentication.ts'
import type { ParsedMail } from '../../shared/mail/parseMail.ts'
import { searchVector } from '../../shared/mail/searchTerms.ts'
import {
  alternativeMessageId,
  ancestors,
  baseSubject,
  messageIdHash,
  sameParticipants,
  subjectKey,
} from '../../shared/mail/threading.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { type NewEvent, recordEvents } from '../events/events.ts'
import { insertAttachments } from './attachments.ts'
import { recordBounce } from './bounces.ts'
import type { InboundMail } from './inboundMails.ts'
import { deleteUnusedRawMails } from './rawMails.ts'

/** The end of an inbound mail. `retransmission`: the inbox has the message. `gone`: the project was deleted. */
export type StoreOutcome = 'stored' | 'retransmission' | 'gone'

/** An inbound mail, its parsed content and the checks of its sender. */
export type AuthenticatedMail = {
  inbound: InboundMail
  mail: ParsedMail
  authentication: Authentication
}

/**
 * Stores parsed mails of one inbox, each in its thread, and ends their inbound mails, in one transaction. The project's
 * row is the inbox's lock: two messages of one inbox never decide on a thread or an identifier at the same time. What
 * is decided on must be read after the lock is held, by a statement of its own: a statement sees what was committed when
 * it began.
 * @param received of one project.
 */
export async function storeParsedMails(
  pool: Pool,
  received: readonly AuthenticatedMail[],
): Promise<StoreOutcome[]> {
  // Before the lock: the other mail of the inbox must not wait for it.
  const indexed = received.map((one) => ({ ...one, search: searchVectorOf(one) }))
  return transaction(pool, async (db) => {
    const outcomes: StoreOutcome[] = []
    const events: NewEvent[] = []
    for (const one of indexed) outcomes.push(await storeOne(db, one, events))
    // Nobody can see, or delete, the bytes of a message that the inbox has already, or had.
    const repeated = received.filter((_, n) => outcomes[n] === 'retransmission')
    await deleteUnusedRawMails(
      db,
      repeated.map(({ inbound }) => inbound.rawId),
    )
    // Once and last: the stream's lock must not be held while a bounce waits for its message's.
    await recordEvents(db, events)
    return outcomes
  })
}

type Indexed = AuthenticatedMail & { search: string }

const searchVectorOf = ({ inbound, mail }: AuthenticatedMail): string =>
  searchVector(inbound.projectId, {
    subject: mail.subject,
    from: mail.from,
    to: [...mail.to, ...mail.cc],
    text: [mail.text, ...mail.attachments.map(({ filename }) => filename)].join('\n'),
  })

async function storeOne(
  db: Queryable,
  received: Indexed,
  events: NewEvent[],
): Promise<StoreOutcome> {
  const { inbound, mail } = received
  if (!(await lockInbox(db, inbound))) return 'gone'
  const known = await lookAround(db, inbound.projectId, mail)
  if (known.isRetransmission) {
    await db.query(
      `update inbound_mails set state = 'retransmission', message_row = $2 where id = $1`,
      [inbound.id, known.earlierRow],
    )
    return 'retransmission'
  }
  const messageId = known.idTaken
    ? await freeMessageId(db, inbound.projectId, mail.links.messageId)
    : mail.links.messageId
  const told = await insertReceived(db, {
    ...received,
    messageId,
    threadRow: known.threadRow ?? (await findThreadBySubject(db, inbound, mail)),
  })
  events.push(...told)
  return 'stored'
}

/** Locks the inbox and the inbound mail. @returns false when the project is gone or the inbound mail has ended. */
async function lockInbox(db: Queryable, inbound: InboundMail): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'lock-inbox',
    text: `select from projects p join inbound_mails i on i.project_id = p.id
           where p.id = $1 and p.deleted_at is null and i.id = $2 and i.state = 'accepted'
           for no key update`,
    values: [inbound.projectId, inbound.id],
  })
  return rowCount === 1
}

type Known = {
  isRetransmission: boolean
  /** The message that this one repeats; null where it was deleted. */
  earlierRow: string | null
  idTaken: boolean
  threadRow: string | null
}

/** Whether the inbox has this very message, whether its Message-ID is taken, and the nearest thread it names. */
async function lookAround(db: Queryable, projectId: string, mail: ParsedMail): Promise<Known> {
  const { links, contentHash } = mail
  const { rows } = await db.query<{
    earlier_row: string | null
    was_deleted: boolean
    id_taken: boolean
    thread_row: string | null
  }>({
    name: 'look-around',
    text: `select
      (select row from messages
       where project_id = $1 and content_hash = $2 and direction = 'received') as earlier_row,
      exists (select from deleted_messages where project_id = $1 and content_hash = $2) as was_deleted,
      exists (select from messages where project_id = $1 and message_id_hash = $3) as id_taken,
      (select t.thread_row from unnest($4::bytea[]) with ordinality h (hash, nearness)
       join thread_identifiers t on t.project_id = $1 and t.message_id_hash = h.hash
       order by h.nearness limit 1) as thread_row`,
    values: [
      projectId,
      contentHash,
      messageIdHash(links.messageId),
      // A bounce belongs to the conversation of what came back, whether it says so in its headers or not.
      [...(mail.bounce?.messageIds ?? []), ...ancestors(links), links.messageId].map(messageIdHash),
    ],
  })
  const row = rows[0]!
  return {
    isRetransmission: row.earlier_row !== null || row.was_deleted,
    earlierRow: row.earlier_row,
    idTaken: row.id_taken,
    threadRow: row.thread_row,
  }
}

/** How far back a reply is looked for that names no message it answers. */
const SUBJECT_DAYS = 30
const THREADS_LOOKED_AT = 5
const MESSAGES_LOOKED_AT = 20

/**
 * The thread of a reply that names nothing: one of the same subject, between the same people, not long ago. Only for a
 * subject that says it is a reply: to join by subject alone puts the invoices of two months, or of two people, together.
 */
async function findThreadBySubject(
  db: Queryable,
  inbound: InboundMail,
  mail: ParsedMail,
): Promise<string | null> {
  const key = subjectKey(mail.subject)
  const named = mail.links.inReplyTo.length > 0 || mail.links.references.length > 0
  if (named || key === null || !baseSubject(mail.subject).isReply) return null
  const { rows } = await db.query<{ thread_row: string; participants: string[] }>({
    name: 'find-thread-by-subject',
    text: `
      select t.row as thread_row, m.participants
      from (
        select row, updated_at from threads
        where project_id = $1 and subject_key = $2 and updated_at > $3::timestamptz - interval '${SUBJECT_DAYS} days'
        order by updated_at desc limit ${THREADS_LOOKED_AT}
      ) t cross join lateral (
        select from_addresses || to_addresses || cc_addresses as participants from messages
        where thread_row = t.row order by created_at desc, row desc limit ${MESSAGES_LOOKED_AT}
      ) m
      order by t.updated_at desc`,
    values: [inbound.projectId, key, inbound.receivedAt],
  })
  const own = [...mail.from, ...mail.to, ...mail.cc]
  return rows.find(({ participants }) => sameParticipants(participants, own))?.thread_row ?? null
}

/** The next free alternative to a Message-ID that another message of this inbox holds (contract §4). */
async function freeMessageId(db: Queryable, projectId: string, wanted: string): Promise<string> {
  for (let probe = 1; ; probe++) {
    // Whoever sends thousands under one Message-ID must not make each of them ask for thousands of names.
    const n = probe <= 8 ? probe : randomInt(9, 2 ** 47)
    const candidate = alternativeMessageId(wanted, n)
    const { rowCount } = await db.query(
      'select from messages where project_id = $1 and message_id_hash = $2',
      [projectId, messageIdHash(candidate)],
    )
    if (rowCount === 0) return candidate
  }
}

const INSERT = `
  with clock as (
    select clock_timestamp()::timestamptz(3) as now
  ), begun as (
    insert into threads (id, project_id, subject, created_at, updated_at, message_count, subject_key)
    select $2, $1, $16, $22, now, 1, $26::bytea from clock where $3::bigint is null
    returning row, id
  ), grown as (
    update threads set message_count = message_count + 1, updated_at = greatest(updated_at, now)
    from clock where row = $3 returning row, id
  ), thread as (
    select row, id from begun union all select row, id from grown
  ), stored as (
    insert into messages (
      project_id, thread_row, raw_id, direction, message_id, message_id_hash, header_message_id, content_hash,
      in_reply_to, reference_ids, from_addresses, to_addresses, cc_addresses, reply_to_addresses, subject, text_body,
      html_body, extracted_text, text_bytes, attachments, labels, created_at, added_at, search,
      authentication)
    select $1, thread.row, $4, 'received', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $16, $17, $18, $19,
      octet_length($17) + octet_length($19) + octet_length(($20::jsonb)::text), $20::jsonb, $21, $22, now, $24::tsvector, $25::jsonb
    from thread, clock
    returning row, thread_row
  ), known as (
    insert into thread_identifiers (project_id, message_id_hash, thread_row)
    select $1, h, thread_row from stored, unnest($15::bytea[]) h
    on conflict do nothing
  )
  update inbound_mails set state = 'stored', message_row = stored.row from stored, thread where inbound_mails.id = $23
  returning inbound_mails.message_row, thread.id as thread_id`

/** Writes thread, message, identifiers and the end of the inbound mail in one statement, then the attachments. @returns the events. */
async function insertReceived(
  db: Queryable,
  input: Indexed & { messageId: string; threadRow: string | null },
): Promise<NewEvent[]> {
  const { inbound, mail, authentication, search, messageId, threadRow } = input
  const { links } = mail
  const { rows } = await db.query<{ message_row: string; thread_id: string }>({
    name: 'insert-received',
    text: INSERT,
    values: [
      inbound.projectId,
      newThreadId(),
      threadRow,
      inbound.rawId,
      messageId,
      messageIdHash(messageId),
      messageId === links.messageId ? null : links.messageId,
      mail.contentHash,
      links.inReplyTo,
      links.references,
      mail.from,
      mail.to,
      mail.cc,
      mail.replyTo,
      [links.messageId, ...ancestors(links)].map(messageIdHash),
      mail.subject,
      mail.text,
      mail.html,
      mail.extractedText,
      JSON.stringify(mail.attachments.map(({ content, ...described }) => described)),
      mail.labels,
      inbound.receivedAt,
      inbound.id,
      search,
      JSON.stringify(authentication),
      subjectKey(mail.subject),
    ],
  })
  const { message_row: messageRow, thread_id: threadId } = rows[0]!
  await insertAttachments(db, messageRow, mail.attachments)
  const data = {
    messageId,
    threadId,
    inboxId: inbound.inboxAddress,
    from: mail.from,
    to: mail.to,
    subject: mail.subject,
    labels: mail.labels,
  }
  const bounced = mail.bounce === null ? [] : await recordBounce(db, inbound.projectId, mail.bounce)
  const received = { projectId: inbound.projectId, type: 'message.received', data } as const
  return [received, ...bounced]
}
