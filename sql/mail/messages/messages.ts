import type { Cursor } from '../../../shared/cursor.ts'
import type { Code } from '../../../shared/mail/codes/codes.ts'
import type { MailLink } from '../../../shared/mail/codes/links/mailLinks.ts'
import type { Authentication } from '../../../shared/mail/parse/authentication.ts'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Queryable } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'
import type { AppliedInvite } from '../calendar/applyInvites.ts'
import { currentAttachments } from './describedTexts.ts'

type Direction = 'received' | 'sent'
export const DELIVERY_STATUSES = [
  ...(['queued', 'sent', 'deferred', 'bounced', 'failed'] as const),
  ...(['scheduled', 'held', 'cancelled', 'rejected', 'expired'] as const),
] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** Describes one message of one inbox. */
export type Message = {
  row: bigint
  messageId: string
  threadId: string
  threadRow: string
  inboxAddress: string
  direction: Direction
  from: string[]
  to: string[]
  cc: string[]
  replyTo: string[]
  subject: string
  text: string
  /** Holds the message's own text without quoted history. For a sent message, it is null. */
  extractedText: string | null
  attachments: Attachment[]
  labels: string[]
  deliveryStatus?: DeliveryStatus | null
  deliveryError: string | null
  /** Holds the time at which a scheduled message will be sent. Null means that the message is not scheduled. */
  sendAt: Date | null
  /**
   * Holds the results of sender authentication. Null means that the project sent the message, or that an older version
   * without sender authentication received it.
   */
  authentication: Authentication | null
  /** Holds the Message-ID in the mail's header. A reply must name this Message-ID. */
  headerMessageId: string
  inReplyTo: string[]
  references: string[]
  createdAt: Date
}

/**
 * Holds the one-time codes, links and calendar invitations that the parser found in a message. They are null if the
 * project sent the message, or if an earlier version of the service received it.
 */
type Found = {
  codes: Code[] | null
  links: MailLink[] | null
  invites: AppliedInvite[] | null
}

/**
 * Describes the API's response to a request for one message. The response also holds the one-time codes, links and
 * calendar invitations of the message.
 */
export type SingleMessage = Message & Found

export type MessageRow = {
  row: string
  message_id: string
  thread_id: string
  thread_row: string
  email_address: string
  direction: Direction
  from_addresses: string[]
  to_addresses: string[]
  cc_addresses: string[]
  reply_to_addresses: string[]
  subject: string
  text_body: string
  extracted_text: string | null
  attachments: Attachment[]
  labels: string[]
  delivery_status: DeliveryStatus | null
  delivery_error: string | null
  send_at: Date | null
  authentication: Authentication | null
  header_message_id: string | null
  in_reply_to: string[]
  reference_ids: string[]
  created_at: Date
}

const COLUMNS = `
  m.row, m.message_id, m.thread_row, m.direction, m.from_addresses, m.to_addresses, m.cc_addresses,
  m.reply_to_addresses, m.subject, m.text_body, m.extracted_text, ${currentAttachments('m')} as attachments,
  m.labels, m.delivery_status, m.delivery_error, m.send_at, m.authentication, m.header_message_id, m.in_reply_to, m.reference_ids, m.created_at`

/**
 * Lists the columns that a query for a single message reads. A query for a list of messages leaves out the one-time
 * codes, links and calendar invitations.
 */
const SINGLE_COLUMNS = `${COLUMNS}, m.codes, m.links, m.invites`

const toSingle = (row: MessageRow & Found): SingleMessage => ({
  ...toMessage(row),
  codes: row.codes,
  links: row.links,
  invites: row.invites,
})

/** Converts a result row of the query {@link WITHIN_BYTES} into a message. */
export const toMessage = (row: MessageRow): Message => ({
  row: BigInt(row.row),
  messageId: row.message_id,
  threadId: row.thread_id,
  threadRow: row.thread_row,
  inboxAddress: row.email_address,
  direction: row.direction,
  from: row.from_addresses,
  to: row.to_addresses,
  cc: row.cc_addresses,
  replyTo: row.reply_to_addresses,
  subject: row.subject,
  text: row.text_body,
  extractedText: row.extracted_text,
  attachments: row.attachments,
  labels: row.labels,
  deliveryStatus: row.delivery_status,
  deliveryError: row.delivery_error,
  sendAt: row.send_at,
  authentication: row.authentication,
  headerMessageId: row.header_message_id ?? row.message_id,
  inReplyTo: row.in_reply_to,
  references: row.reference_ids,
  createdAt: row.created_at,
})

/**
 * Sets the maximum number of bytes of text in one page of messages. The page ends early at this limit, because a
 * hundred of the largest messages would have gigabytes.
 */
const PAGE_TEXT_BYTES = 8 * 1024 * 1024

export type MessageFilter = {
  projectId: string
  /** Selects messages that have all labels of the given list. */
  labels: readonly string[]
  /** Selects messages from the time `after` (inclusive) to the time `before` (exclusive). */
  after: Date | null
  before: Date | null
  /** Selects messages with the given delivery status. Null selects messages with any delivery status. */
  deliveryStatus?: DeliveryStatus | null
  cursor: Cursor | null
  /** Holds the maximum number of messages of a page, from 1 to 100. */
  limit: number
}

/** Returns one page of messages, newest first, and tells whether more messages follow. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
): Promise<{ messages: Message[]; more: boolean }> {
  const { projectId, labels, after, limit, deliveryStatus = null } = filter
  const byLabel = labels.length > 0
  const byStatus = deliveryStatus !== null
  const { at, row } = upperBound(filter)
  const { rows } = await db.query<MessageRow & { found: number }>({
    name: `list-messages${byLabel ? '-by-label' : ''}${byStatus ? '-by-status' : ''}`,
    text: `with ${byLabel ? labelledPage(byStatus) : page(byStatus)} ${WITHIN_BYTES}`,
    values: [
      projectId,
      at,
      row,
      limit + 1,
      after ?? '-infinity',
      ...(byStatus ? [deliveryStatus] : []),
      ...(byLabel ? [await rarestFirst(db, projectId, labels)] : []),
    ],
  })
  const messages = rows.slice(0, limit).map(toMessage)
  return { messages, more: messages.length < (rows[0]?.found ?? 0) }
}

/** Returns the upper bound of a page of messages: the cursor, or `before` if that time is not later. */
export function upperBound({ cursor, before }: Pick<MessageFilter, 'cursor' | 'before'>): {
  at: Date | string
  row: bigint
} {
  if (before !== null && (cursor === null || before.getTime() <= cursor.atMs)) {
    return { at: before, row: 0n }
  }
  const [at, row] = pageStart(cursor)
  return { at, row }
}

const page = (byStatus: boolean) => `
  page as (
    select row, created_at, text_bytes from messages
    where project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
      and created_at >= $5::timestamptz ${byStatus ? 'and delivery_status = $6' : ''}
    order by created_at desc, row desc limit $4
  )`

/**
 * Writes SQL for a page of labelled messages. The SQL reads the messages that have the first label of the filter, and
 * keeps those that also have all others.
 */
const labelledPage = (byStatus: boolean) => {
  const given = `$${byStatus ? 7 : 6}::text[]`
  return `
  page as (
    select m.row, m.created_at, m.text_bytes
    from message_labels l join messages m on m.row = l.message_row
    where l.project_id = $1 and l.label = (${given})[1]
      and (l.created_at, l.message_row) < ($2::timestamptz, $3::bigint) and l.created_at >= $5::timestamptz
      and (cardinality(${given}) = 1 or m.labels @> ${given}) ${byStatus ? 'and m.delivery_status = $6' : ''}
    order by l.created_at desc, l.message_row desc limit $4
  )`
}

/**
 * Sets the maximum number of messages that `rarestFirst` counts for each label. A label on more messages counts as
 * common.
 */
const COUNTED_MAX = 1_000

/**
 * Sorts labels by the number of their messages, the rarest label first. This order matters, because `labelledPage`
 * reads all messages with the first label.
 */
export async function rarestFirst(
  db: Queryable,
  projectId: string,
  labels: readonly string[],
): Promise<readonly string[]> {
  if (labels.length === 1) return labels
  const { rows } = await db.query<{ label: string }>({
    name: 'rarest-labels',
    text: `select label from unnest($2::text[]) label
           cross join lateral (
             select count(*) as count from (
               select from message_labels where project_id = $1 and label = label.label limit ${COUNTED_MAX}) carrier
           ) c
           order by count`,
    values: [projectId, labels],
  })
  return rows.map((row) => row.label)
}

/**
 * Selects the messages of the query `page`, newest first, until their text reaches the size limit PAGE_TEXT_BYTES. The
 * query does not read the bodies of later messages.
 */
export const WITHIN_BYTES = `
  select ${COLUMNS}, t.id as thread_id, p.email_address, s.found
  from (
    select row, count(*) over ()::int as found,
           sum(text_bytes) over (order by created_at desc, row desc) - text_bytes as bytes_before
    from page
  ) s
  join messages m on m.row = s.row
  join threads t on t.row = m.thread_row
  join projects p on p.id = m.project_id
  where s.bytes_before < ${PAGE_TEXT_BYTES}
  order by m.created_at desc, m.row desc`

/** Selects one message. The SQL parameter $1 is the project, and $2 is the hash of the Message-ID. */
export const FIND_MESSAGE = `
  select ${SINGLE_COLUMNS}, t.id as thread_id, p.email_address
  from messages m join threads t on t.row = m.thread_row join projects p on p.id = m.project_id
  where m.project_id = $1 and m.message_id_hash = $2`

/** Identifies a wanted message by its project and its Message-ID. */
export type WantedMessage = { projectId: string; messageId: string }

/**
 * Finds the messages that the callers want, in one query for several projects.
 * @returns one result for each wanted message, in the order of `wanted`. A null result means that the project has no
 * such message.
 */
export async function findMessages(
  db: Queryable,
  wanted: readonly WantedMessage[],
): Promise<(SingleMessage | null)[]> {
  const hashes = wanted.map(({ messageId }) => messageIdHash(messageId))
  const { rows } = await db.query<MessageRow & Found & { n: number }>({
    name: 'find-messages',
    text: `
      select w.n::int, ${SINGLE_COLUMNS}, t.id as thread_id, p.email_address
      from unnest($1::text[], $2::bytea[]) with ordinality as w (project_id, hash, n)
      join messages m on m.project_id = w.project_id and m.message_id_hash = w.hash
      join threads t on t.row = m.thread_row join projects p on p.id = m.project_id`,
    values: [wanted.map(({ projectId }) => projectId), hashes],
  })
  const found = new Map(rows.map((row) => [row.n, row]))
  return wanted.map((_, at) => {
    const row = found.get(at + 1)
    return row === undefined ? null : toSingle(row)
  })
}

/** Finds one message of a project. @returns null if the project has no such message. */
export async function findMessage(
  db: Queryable,
  projectId: string,
  messageId: string,
): Promise<SingleMessage | null> {
  const { rows } = await db.query<MessageRow & Found>({
    name: 'find-message',
    text: FIND_MESSAGE,
    values: [projectId, messageIdHash(messageId)],
  })
  return rows[0] === undefined ? null : toSingle(rows[0])
}

/** Lists the newest `limit` messages of a thread, oldest first, with at most PAGE_TEXT_BYTES bytes of text in total. */
export async function listThreadMessages(
  db: Queryable,
  { threadRow, limit }: { threadRow: string; limit: number },
): Promise<Message[]> {
  const { rows } = await db.query<MessageRow>({
    name: 'list-thread-messages',
    text: `
      with page as (
        select row, created_at, text_bytes from messages where thread_row = $1
        order by created_at desc, row desc limit $2
      )
      ${WITHIN_BYTES}`,
    values: [threadRow, limit],
  })
  return rows.map(toMessage).reverse()
}
