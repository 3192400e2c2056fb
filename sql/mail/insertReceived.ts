import { newThreadId } from '../../shared/ids.ts'
import type { Authentication } from '../../shared/mail/authentication.ts'
import type { ParsedMail } from '../../shared/mail/parseMail.ts'
import { ancestors, messageIdHash, subjectKey } from '../../shared/mail/threading.ts'
import type { Queryable } from '../db.ts'
import type { NewEvent } from '../events/events.ts'
import { insertAttachments } from './attachments.ts'
import { recordBounce } from './bounces.ts'
import type { InboundMail } from './inboundMails.ts'

/** A parsed mail with its place in the inbox. */
export type ReceivedMessage = {
  inbound: InboundMail
  mail: ParsedMail
  authentication: Authentication
  /** The text form of its search vector. */
  search: string
  /** The stored Message-ID; it differs from the mail's if that was taken. */
  messageId: string
  /** The thread it joins; null: a new thread. */
  threadRow: string | null
}

/**
 * $1 the record of the message. $2 text, $3 HTML and $4 extracted text stand apart: JSON would escape megabytes. So do
 * bytea values: $5 hash of the Message-ID, $6 content hash, $7 hashes of all named Message-IDs, $8 subject key.
 */
const INSERT_RECEIVED = `
  with bodies as not materialized (
    select $2::text as text_body, $3::text as html_body, $4::text as extracted_text
  ), hashes as not materialized (
    select $5::bytea as message_id_hash, $6::bytea as content_hash, $7::bytea[] as identifiers, $8::bytea as subject_key
  ), given as (
    select i.*, clock_timestamp()::timestamptz(3) as now
    from jsonb_to_record($1::jsonb) as i (
      inbound_id bigint, project_id text, raw_id bigint, thread_row bigint, new_thread_id text, message_id text,
      header_message_id text, in_reply_to text[], reference_ids text[], from_addresses text[], to_addresses text[],
      cc_addresses text[], reply_to_addresses text[], subject text, attachments jsonb, labels text[],
      received_at timestamptz, search tsvector, authentication jsonb, stored_bytes bigint)
  ), begun as (
    insert into threads (id, project_id, subject, created_at, updated_at, message_count, subject_key)
    select g.new_thread_id, g.project_id, g.subject, g.received_at, g.now, 1, h.subject_key
    from given g, hashes h where g.thread_row is null
    returning row, id
  ), grown as (
    update threads t set message_count = t.message_count + 1, updated_at = greatest(t.updated_at, g.now)
    from given g where t.row = g.thread_row returning t.row, t.id
  ), thread as (
    select row, id from begun union all select row, id from grown
  ), stored as (
    insert into messages (
      project_id, thread_row, raw_id, direction, message_id, message_id_hash, header_message_id, content_hash,
      in_reply_to, reference_ids, from_addresses, to_addresses, cc_addresses, reply_to_addresses, subject, text_body,
      html_body, extracted_text, text_bytes, attachments, labels, created_at, added_at, search,
      authentication, stored_bytes)
    select g.project_id, t.row, g.raw_id, 'received', g.message_id, h.message_id_hash, g.header_message_id,
      h.content_hash, g.in_reply_to, g.reference_ids, g.from_addresses, g.to_addresses, g.cc_addresses,
      g.reply_to_addresses, g.subject, b.text_body, b.html_body, b.extracted_text,
      octet_length(b.text_body) + octet_length(b.extracted_text) + octet_length(g.attachments::text), g.attachments,
      g.labels, g.received_at, g.now, g.search, g.authentication, g.stored_bytes
    from given g, bodies b, hashes h, thread t
    returning row, project_id, thread_row
  ), known as (
    insert into thread_identifiers (project_id, message_id_hash, thread_row)
    select s.project_id, i, s.thread_row from stored s, hashes h, unnest(h.identifiers) i
    on conflict do nothing
  )
  update inbound_mails m set state = 'stored', message_row = s.row
  from stored s, thread t, given g where m.id = g.inbound_id
  returning m.message_row, t.id as thread_id`

/**
 * Stores thread, message, identifiers and the end of the inbound mail in one statement, then the attachments.
 * @returns the events.
 */
export async function insertReceived(db: Queryable, message: ReceivedMessage): Promise<NewEvent[]> {
  const { inbound, mail, authentication, search, messageId, threadRow } = message
  const { links } = mail
  const { rows } = await db.query<{ message_row: string; thread_id: string }>({
    name: 'insert-received',
    text: INSERT_RECEIVED,
    values: [
      JSON.stringify({
        inbound_id: inbound.id,
        project_id: inbound.projectId,
        raw_id: inbound.rawId,
        thread_row: threadRow,
        new_thread_id: newThreadId(),
        message_id: messageId,
        header_message_id: messageId === links.messageId ? null : links.messageId,
        in_reply_to: links.inReplyTo,
        reference_ids: links.references,
        from_addresses: mail.from,
        to_addresses: mail.to,
        cc_addresses: mail.cc,
        reply_to_addresses: mail.replyTo,
        subject: mail.subject,
        attachments: mail.attachments.map(({ content, ...described }) => described),
        labels: mail.labels,
        received_at: inbound.receivedAt,
        search,
        authentication,
        stored_bytes: inbound.bytes.length,
      }),
      mail.text,
      mail.html,
      mail.extractedText,
      messageIdHash(messageId),
      mail.contentHash,
      [links.messageId, ...ancestors(links)].map(messageIdHash),
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
