import type { CustomHeaders } from '../../../shared/mail/compose/customHeaders.ts'
import type { Unsubscribe } from '../../../shared/mail/compose/unsubscribe.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Queryable } from '../../db.ts'

/**
 * Holds the content of an outbound mail. The service composes the bytes of the mail from this content and the
 * attachments.
 */
export type OutboundContent = {
  projectId: string
  hasAttachments: boolean
  messageRow: string
  rawId: string | null
  /** Tells whether the bytes of the mail were removed after the project's retention time. */
  isRawExpired: boolean
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
  headers: CustomHeaders | null
  /** Holds the display names for the header fields To and Cc, by email address. */
  names: Record<string, string>
  /** Holds the time in the mail's header field Date: the scheduled time, or the time of the API call. */
  date: Date
}

/** Describes an outbound mail for one delivery attempt. */
export type OutboundMail = OutboundContent & {
  /**
   * Holds the number of the delivery attempt that begins now, counted from 1. The function `recordMailAttempts`
   * compares `attempt` with the attempt number that the database stores for the mail.
   */
  attempt: number
  acceptedAt: Date
  /** Holds the SHA-256 of the mail bytes that the owner approved. Null means that nobody had to approve the mail. */
  approvedHash: Buffer | null
  /** Lists the recipients to whom the service must send the mail now. */
  due: DueRecipient[]
  /** Lists the other recipients without a final result, with the times of their next delivery attempts. */
  later: (Omit<DueRecipient, 'suppressed'> & { at: Date })[]
  /** Lists those recipient domains that are verified mail domains of this service. */
  ownDomains: string[]
  /**
   * Lists those recipient domains whose mail may still come to this service: mail domains whose verification has failed
   * since, and domains of inboxes from a former MAIL_DOMAIN. The list may also hold the present MAIL_DOMAIN.
   */
  formerDomains: string[]
  /** Holds the number of bytes that the mail counts in the storage of its project. */
  storedBytes: number
  traceparent: string | null
}

/**
 * Describes a recipient of an outbound mail. The field `attempts` counts the earlier delivery attempts for the
 * recipient.
 */
type DueRecipient = {
  address: string
  attempts: number
  /** Tells whether the recipient was suppressed after the API accepted the message. */
  suppressed: boolean
}

type ContentRow = {
  project_id: string
  has_attachments: boolean
  message_row: string
  raw_id: string | null
  raw_expired: boolean
  message_id: string
  from_addresses: string[]
  from_name: string
  to_addresses: string[]
  cc_addresses: string[]
  subject: string
  text_body: string
  html_body: string | null
  in_reply_to: string[]
  reference_ids: string[]
  unsubscribe: Unsubscribe | null
  headers: CustomHeaders | null
  names: Record<string, string> | null
  date: Date
}

type OutboundRow = ContentRow & {
  attempt: number
  accepted_at: Date
  approved_hash: Buffer | null
  pending: (DueRecipient & { at: string; isDue: boolean })[]
  own_domains: string[]
  former_domains: string[]
  stored_bytes: string
  traceparent: string | null
}

/**
 * Lists the SQL columns of a {@link ContentRow}, from the tables outbound_mails (alias o), messages (alias m) and
 * projects (alias p).
 */
const CONTENT = `o.message_row, o.project_id, m.raw_id, m.raw_expired, m.message_id, m.from_addresses,
        coalesce(p.display_name, p.name) as from_name,
        m.to_addresses, m.cc_addresses, m.subject, m.text_body, m.html_body, m.in_reply_to, m.reference_ids,
        o.unsubscribe, o.headers, o.names, coalesce(m.send_at, m.created_at) as date,
        m.attachments <> '[]'::jsonb as has_attachments`

const contentOf = (row: ContentRow): OutboundContent => ({
  projectId: row.project_id,
  hasAttachments: row.has_attachments,
  messageRow: row.message_row,
  rawId: row.raw_id,
  isRawExpired: row.raw_expired,
  messageId: row.message_id,
  fromAddress: row.from_addresses[0]!,
  fromName: row.from_name,
  to: row.to_addresses,
  cc: row.cc_addresses,
  subject: row.subject,
  text: row.text_body,
  html: row.html_body,
  inReplyTo: row.in_reply_to,
  references: row.reference_ids,
  unsubscribe: row.unsubscribe,
  headers: row.headers,
  names: row.names ?? {},
  date: row.date,
})

/**
 * Returns the content of a project's outbound mail. The field `isScheduled` tells whether the mail waits for its time,
 * and no delivery attempt has begun. @returns null if the project has no outbound mail with the Message-ID.
 */
export async function findOutboundContent(
  db: Queryable,
  projectId: string,
  messageId: string,
): Promise<(OutboundContent & { isScheduled: boolean }) | null> {
  const { rows } = await db.query<ContentRow & { is_scheduled: boolean }>({
    name: 'find-outbound-content',
    text: `
      select ${CONTENT}, m.delivery_status = 'scheduled' as is_scheduled
      from messages m join outbound_mails o on o.message_row = m.row join projects p on p.id = m.project_id
      where m.project_id = $1 and m.message_id_hash = $2 and p.deleted_at is null`,
    values: [projectId, messageIdHash(messageId)],
  })
  const row = rows[0]
  return row === undefined ? null : { ...contentOf(row), isScheduled: row.is_scheduled }
}

/** Writes a query for the mail domains of this service that meet a condition and belong to a recipient. */
const domainsOfRecipients = (condition: string): string => `
          array(select d.domain from mail_domains d where ${condition} and d.domain in (
                  select lower(split_part(r.address, '@', 2)) from outbound_recipients r
                  where r.message_row = o.message_row))`

/**
 * Selects the domains of those recipients that are inboxes of this service, with or without a `+tag`. The domains in the
 * table mail_domains are left out.
 */
const DOMAINS_OF_INBOXES = `
          array(select distinct split_part(i.email_address, '@', 2) from outbound_recipients r
                join projects i on i.email_address in (
                  lower(r.address), regexp_replace(lower(r.address), '^([^+@]+)[+][^@]*@', '\\1@'))
                where r.message_row = o.message_row and i.deleted_at is null and not exists (
                  select from mail_domains d where d.domain = split_part(i.email_address, '@', 2)))`

/**
 * Begins the next delivery attempts of outbound mails. The function counts the attempts and reads the content of the
 * mails. From the first attempt on, nobody can cancel a scheduled mail any more.
 * @returns a result for each mail, in the order of `messageRows`. Null means that the mail is finished, held for
 * approval or deleted, or that its next attempt is not due yet. For example, a job may run again after its first run
 * has recorded an attempt.
 */
export async function beginAttempts(
  db: Queryable,
  messageRows: readonly string[],
): Promise<(OutboundMail | null)[]> {
  const { rows } = await db.query<OutboundRow>({
    name: 'begin-attempts',
    text: `
      with locked as materialized (
        -- Every SQL statement locks rows of outbound mails in the order of message_row, so two batches never deadlock.
        -- The query selects only by the primary key, because with a backlog of mail PostgreSQL would read a whole index
        -- of due mail.
        select message_row, state, next_attempt_at from outbound_mails where message_row = any ($1)
        order by message_row for no key update
      ), begun as (
        update outbound_mails o set attempt = o.attempt + 1
        from locked l join messages m on m.row = l.message_row join projects p on p.id = m.project_id
        where o.message_row = l.message_row and l.state in ('queued', 'deferred')
          and p.deleted_at is null and l.next_attempt_at <= clock_timestamp() + interval '1 second'
        returning o.attempt, o.accepted_at, o.approved_hash, o.traceparent, ${CONTENT},
          m.stored_bytes, ${domainsOfRecipients("d.status = 'verified'")} as own_domains,
          ${domainsOfRecipients("d.status = 'failed' and d.verified_at is not null")}
            || ${DOMAINS_OF_INBOXES} as former_domains,
          (select coalesce(json_agg(json_build_object(
            'address', r.address, 'attempts', r.attempts, 'at', r.next_attempt_at,
            'isDue', r.next_attempt_at <= greatest(r.first, clock_timestamp() + interval '1 second'),
            'suppressed', exists (
              select from suppressions s where s.project_id = o.project_id and s.address = lower(r.address))
            ) order by r.address), '[]')
           from (
             select address, attempts, next_attempt_at, min(next_attempt_at) over () as first
             from outbound_recipients where message_row = o.message_row and state in ('queued', 'deferred')
           ) r) as pending
      ), due_now as (
        update messages m set delivery_status = 'queued', labels = array_remove(m.labels, 'scheduled')
        from begun b where m.row = b.message_row and m.delivery_status = 'scheduled'
      )
      select * from begun`,
    values: [messageRows],
  })
  const begun = new Map(rows.map((row) => [row.message_row, toOutboundMail(row)]))
  return messageRows.map((row) => begun.get(row) ?? null)
}

/**
 * Returns those of the given recipients to whom a running delivery attempt may still send the mail. During the attempt,
 * the message may be deleted, a bounce may suppress a recipient, or another attempt may begin. The attempt must then
 * not send the mail.
 */
export async function findStillDue(
  db: Queryable,
  { messageRow, attempt }: Pick<OutboundMail, 'messageRow' | 'attempt'>,
  addresses: readonly string[],
): Promise<string[]> {
  const { rows } = await db.query<{ address: string }>({
    name: 'find-still-due',
    text: `
      select r.address from outbound_mails o join projects p on p.id = o.project_id
      join outbound_recipients r on r.message_row = o.message_row
      where o.message_row = $1 and o.attempt = $2 and o.state in ('queued', 'deferred') and p.deleted_at is null
        and r.address = any ($3) and r.state in ('queued', 'deferred') and not exists (
          select from suppressions s where s.project_id = o.project_id and s.address = lower(r.address))
      order by r.address`,
    values: [messageRow, attempt, addresses],
  })
  return rows.map(({ address }) => address)
}

function toOutboundMail(row: OutboundRow): OutboundMail {
  return {
    ...contentOf(row),
    attempt: row.attempt,
    acceptedAt: row.accepted_at,
    approvedHash: row.approved_hash,
    due: row.pending
      .filter(({ isDue }) => isDue)
      .map(({ address, attempts, suppressed }) => ({ address, attempts, suppressed })),
    later: row.pending
      .filter(({ isDue }) => !isDue)
      .map(({ address, attempts, at }) => ({ address, attempts, at: new Date(at) })),
    ownDomains: row.own_domains,
    formerDomains: row.former_domains,
    storedBytes: Number(row.stored_bytes),
    traceparent: row.traceparent,
  }
}

/**
 * Returns the milliseconds until the next future delivery attempt of any outbound mail. Null means that no mail has
 * one. A mail that is held for approval has no time for its next attempt.
 */
export async function nextMailInMs(db: Queryable): Promise<number | null> {
  const { rows } = await db.query<{ in_ms: number | null }>({
    name: 'next-mail',
    text: `
      select (extract(epoch from min(next_attempt_at) - statement_timestamp()) * 1000)::float8 as in_ms
      from outbound_mails
      where state <> 'done' and next_attempt_at > statement_timestamp() and next_attempt_at < 'infinity'`,
  })
  return rows[0]?.in_ms ?? null
}
