import { newThreadId } from '../../../shared/ids.ts'
import { mayHoldText } from '../../../shared/mail/documents/documentKind.ts'
import type { Authentication } from '../../../shared/mail/parse/authentication.ts'
import type { AttachmentText, ParsedMail } from '../../../shared/mail/parse/parseMail.ts'
import { ancestors, messageIdHash, subjectKey } from '../../../shared/mail/threading.ts'
import type { Queryable } from '../../db.ts'
import type { NewEvent } from '../../events/events.ts'
import { binaryArray, packBytes } from '../../packedBytes.ts'
import { addJob } from '../../queue/jobs.ts'
import { insertAttachments } from '../messages/attachments.ts'
import { insertPendingTexts } from '../messages/attachmentTexts.ts'
import { recordBounce } from './bounces.ts'
import type { InboundMail } from './inboundMails.ts'

/** Describes a parsed mail with its stored Message-ID and its thread. */
export type ReceivedMessage = {
  inbound: InboundMail
  mail: ParsedMail
  authentication: Authentication
  /**
   * Lists the hash of each attachment's object in the object store, in the order of the attachments. If the hash of an
   * attachment is absent or null, the attachment's database row holds the bytes.
   */
  objects?: readonly (Buffer | null)[]
  /**
   * Tells that the message contains an aggregate report (DMARC or TLS), so that a worker process must read the
   * attachments.
   */
  holdsReport?: boolean
  /** Holds the message's search vector in binary form. */
  search: Uint8Array
  /**
   * Holds the Message-ID under which the inbox stores the message. It differs from the mail's own Message-ID if another
   * message of the inbox already has the same one.
   */
  messageId: string
  /** Holds the thread that the message joins. Null means that the message starts a new thread. */
  threadRow: string | null
}

/**
 * Stores received messages. The parameter $1 holds the records of the messages in order. The parameter $2 holds the
 * text, HTML and extracted text of all messages in one byte string, because JSON would have to escape megabytes of
 * text. The parameter $3 holds the search vectors.
 */
const INSERT_RECEIVED = `
  with given as (
    select i.*, clock_timestamp()::timestamptz(3) as now
    from jsonb_to_recordset($1::jsonb) as i (
      n int, inbound_id bigint, project_id text, raw_id bigint, thread_row bigint, new_thread_id text, message_id text,
      header_message_id text, in_reply_to text[], reference_ids text[], from_addresses text[], to_addresses text[],
      cc_addresses text[], reply_to_addresses text[], subject text, codes jsonb, links jsonb, attachments jsonb, labels text[],
      received_at timestamptz, authentication jsonb, stored_bytes bigint, message_id_hash bytea, content_hash bytea,
      identifiers bytea[], subject_key bytea, list_bytes int, starts int[], lengths int[])
  ), begun as (
    insert into threads (id, project_id, subject, created_at, updated_at, message_count, subject_key)
    select new_thread_id, project_id, subject, received_at, now, 1, subject_key
    from given where thread_row is null order by n
    returning row, id
  ), grown as (
    update threads t set message_count = t.message_count + g.count, updated_at = greatest(t.updated_at, g.now)
    from (
      select thread_row, count(*)::int as count, max(now) as now from given where thread_row is not null group by thread_row
    ) g where t.row = g.thread_row returning t.row, t.id
  ), placed as (
    select g.*, t.row as thread, t.id as thread_id from given g join begun t on t.id = g.new_thread_id
    union all
    select g.*, t.row, t.id from given g join grown t on t.row = g.thread_row
  ), stored as (
    insert into messages (
      project_id, thread_row, raw_id, direction, message_id, message_id_hash, header_message_id, content_hash,
      in_reply_to, reference_ids, from_addresses, to_addresses, cc_addresses, reply_to_addresses, subject, text_body,
      html_body, extracted_text, text_bytes, codes, links, attachments, labels, created_at, added_at, search,
      authentication, stored_bytes)
    select project_id, thread, raw_id, 'received', message_id, message_id_hash, header_message_id,
      content_hash, in_reply_to, reference_ids, from_addresses, to_addresses, cc_addresses, reply_to_addresses, subject,
      ${unpacked(1)}, case when lengths[2] >= 0 then ${unpacked(2)} end, ${unpacked(3)},
      lengths[1] + lengths[3] + octet_length(attachments::text) + list_bytes, codes, links, attachments, labels, received_at, now,
      ($3::tsvector[])[n + 1], authentication, stored_bytes
    from placed order by n
    returning row, project_id, thread_row, message_id_hash
  ), done as (
    select s.row, s.thread_row, p.project_id, p.inbound_id, p.thread_id, p.identifiers
    from stored s join placed p using (project_id, message_id_hash)
  ), known as (
    insert into thread_identifiers (project_id, message_id_hash, thread_row)
    select project_id, i, thread_row from done, unnest(identifiers) i
    on conflict do nothing
  )
  update inbound_mails m set state = 'stored', message_row = d.row
  from done d where m.id = d.inbound_id
  returning m.id, m.message_row, d.thread_id`

/**
 * Holds the object id of the PostgreSQL type `tsvector` in pg_type.dat. The object id of `tsvector` is the same in
 * every release of PostgreSQL.
 */
const TSVECTOR_OID = 3614

/** Writes SQL that reads the n-th text of a message from the packed texts in the parameter $2. */
function unpacked(n: number): string {
  return `convert_from(substring($2::bytea from starts[${n}] for greatest(lengths[${n}], 0)), 'UTF8')`
}

/**
 * Stores messages with their threads and identifiers, and marks their inbound mails as processed, in one statement. A
 * second statement then stores the attachments. No message of the batch may refer to another message of the batch.
 * @returns the webhook events about the stored messages.
 */
export async function insertReceived(
  db: Queryable,
  messages: readonly ReceivedMessage[],
): Promise<NewEvent[]> {
  const parts = messages.map(({ mail }) => [
    Buffer.from(mail.text),
    Buffer.from(mail.html ?? ''),
    // Most mails have no quoted history, so their extracted text equals their text. In this case, the function sends
    // the text to the database only once.
    Buffer.from(mail.extractedText === mail.text ? '' : mail.extractedText),
  ])
  const packed = packBytes(parts.flat())
  const records = messages.map((message, n) => {
    const starts = packed.starts.slice(3 * n, 3 * n + 3)
    const lengths = packed.lengths.slice(3 * n, 3 * n + 3)
    if (message.mail.html === null) lengths[1] = -1
    if (message.mail.extractedText === message.mail.text) {
      starts[2] = starts[0]!
      lengths[2] = lengths[0]!
    }
    return { n, ...recordOf(message), starts, lengths }
  })
  const { rows } = await db.query<{ id: string; message_row: string; thread_id: string }>({
    name: 'insert-received',
    text: INSERT_RECEIVED,
    values: [
      JSON.stringify(records),
      packed.bytes,
      binaryArray(
        TSVECTOR_OID,
        messages.map(({ search }) => search),
      ),
    ],
  })
  const byInbound = new Map(rows.map((row) => [row.id, row]))
  const events: NewEvent[] = []
  for (const { inbound, mail, messageId, objects, holdsReport } of messages) {
    const { message_row: messageRow, thread_id: threadId } = byInbound.get(inbound.id)!
    await insertAttachments(
      db,
      messageRow,
      mail.attachments.map((file, n) => ({ ...file, blob: objects?.[n] ?? null })),
    )
    await insertPendingTexts(
      db,
      { projectId: inbound.projectId, messageRow },
      mail.attachments.flatMap((file) =>
        mayHoldText(file) && file.content.length > 0 ? file.attachmentId : [],
      ),
    )
    if (holdsReport === true) {
      await addJob(db, {
        task: 'read_report',
        payload: { messageRow },
        key: `read_report:${messageRow}`,
      })
    }
    const data = {
      messageId,
      threadId,
      inboxId: inbound.inboxAddress,
      from: mail.from,
      to: mail.to,
      subject: mail.subject,
      labels: mail.labels,
    }
    const { projectId, traceparent } = inbound
    events.push({ projectId, type: 'message.received', data, traceparent })
    if (mail.codes.length > 0) {
      events.push({ projectId, type: 'message.code', data, traceparent })
    }
    if (mail.bounce !== null)
      events.push(...(await recordBounce(db, inbound.projectId, mail.bounce)))
  }
  return events
}

const PENDING: AttachmentText = { state: 'pending', chars: 0, omitted: [] }

/** Returns a received message as a record for `jsonb_to_recordset`. */
const recordOf = ({ inbound, mail, authentication, messageId, threadRow }: ReceivedMessage) => {
  const { links } = mail
  const key = subjectKey(mail.subject)
  return {
    inbound_id: inbound.id,
    project_id: inbound.projectId,
    raw_id: inbound.rawId,
    thread_row: threadRow,
    new_thread_id: threadRow === null ? newThreadId() : null,
    message_id: messageId,
    header_message_id: messageId === links.messageId ? null : links.messageId,
    in_reply_to: links.inReplyTo,
    reference_ids: links.references,
    from_addresses: mail.from,
    to_addresses: mail.to,
    cc_addresses: mail.cc,
    reply_to_addresses: mail.replyTo,
    subject: mail.subject,
    codes: mail.codes,
    links: mail.mailLinks,
    attachments: mail.attachments.map(({ content, ...described }) => ({
      ...described,
      ...(mayHoldText(described) && content.length > 0 ? { text: PENDING } : {}),
    })),
    labels: mail.labels,
    received_at: inbound.receivedAt,
    authentication,
    stored_bytes: inbound.bytes.length,
    message_id_hash: hex(messageIdHash(messageId)),
    content_hash: hex(mail.contentHash),
    identifiers: [links.messageId, ...ancestors(links)].map(messageIdHash).map(hex),
    subject_key: key === null ? null : hex(key),
    // The size of a message in a list includes its addresses and identifiers, because a page of messages also holds
    // them.
    list_bytes: [mail.from, mail.to, mail.cc, mail.replyTo, links.inReplyTo, links.references]
      .flat()
      .reduce((sum, text) => sum + Buffer.byteLength(text), 0),
  }
}

const hex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString('hex')}`
