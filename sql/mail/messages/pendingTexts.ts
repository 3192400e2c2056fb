import type { SearchedMail } from '../../../shared/mail/search/searchTerms.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { StoredContent } from '../../blobs/blobs.ts'
import type { Pool, Queryable } from '../../db.ts'
import { binaryArray } from '../../packedBytes.ts'
import { hasNoJob } from '../../queue/jobs.ts'
import type { InboundMail } from '../inbound/inboundMails.ts'
import { queueReading } from './attachmentTexts.ts'

/**
 * Limits the bytes and the processor time for reading a project's attachments in a UTC day. A null value means that no
 * such limit applies.
 */
export type TextLimits = { bytes: number | null; cpuSeconds: number | null }

/**
 * Sets the number of seconds after which another run of the reading job may take an attachment. The first run has then
 * certainly died, because it needs only seconds of processor time to read a file.
 */
const CLAIM_SECONDS = 120

/**
 * Holds the SQL condition for mail with attachments that the job that reads attachments may read. The condition
 * excludes the project's own mail that is not sent yet, because the service may never send it.
 */
const IS_ON_ITS_WAY = `(m.delivery_status is null
  or m.delivery_status not in ('scheduled', 'held', 'cancelled', 'rejected', 'expired'))`
/**
 * Sets how many seconds after the scheduled time of a mail the job reads its attachments, because the service sends the
 * mail at about the scheduled time.
 */
const SCHEDULED_SECONDS = 1

/** Holds the SQL condition for attachments that no run of the reading job has taken. */
const IS_FREE = `(claimed_at is null or claimed_at < clock_timestamp() - interval '${CLAIM_SECONDS} seconds')`

/**
 * Describes an attachment that waits for the reading of its text. The field `tries` counts the runs of the reading job
 * that took the attachment, including the current run.
 */
export type PendingText = {
  messageRow: string
  attachmentId: string
  filename: string
  contentType: string
  tries: number
  stored: StoredContent
}

/**
 * Sets the maximum size in bytes of the further attachments that a run of the reading job takes together with the first
 * one. A larger attachment takes so much work that a separate SQL statement costs little in comparison.
 */
const SMALL_BYTES = 4096

/**
 * Takes a project's oldest pending attachment that no run of the reading job currently holds. The function also takes
 * up to `limit - 1` further small attachments of the same message. If an earlier run took the attachment without
 * finishing, the attachment may have killed this run. The function then takes the attachment alone, so that another
 * kill counts no try of the other attachments.
 * @param claim identifies the run of the reading job. A run that asks twice with the same claim gets the same
 * attachments both times.
 */
export async function takePendingTexts(
  db: Queryable,
  projectId: string,
  { claim, limit }: { claim: string; limit: number },
): Promise<PendingText[]> {
  const { rows } = await db.query<
    Omit<PendingText, 'stored'> & { bytes: Buffer | null; blob: Buffer | null }
  >({
    name: 'take-pending-texts',
    text: `
      with first as (
        select message_row, attachment_id, tries = 0 or claim is not distinct from $2 as is_fresh
        from attachment_texts
        where project_id = $1 and state = 'pending'
          and exists (select from messages m where m.row = message_row and ${IS_ON_ITS_WAY})
          and (${IS_FREE} or claim = $2)
        order by claim = $2 desc nulls last, message_row limit 1 for update skip locked
      ), further as (
        select message_row, attachment_id from attachment_texts x
        where message_row = (select message_row from first where is_fresh) and project_id = $1 and state = 'pending'
          and attachment_id <> (select attachment_id from first) and (tries = 0 and claimed_at is null or claim = $2)
          and (select case when a.blob is null then octet_length(a.bytes) end from message_attachments a
               where (a.message_row, a.attachment_id) = (x.message_row, x.attachment_id)) <= ${SMALL_BYTES}
        limit $3::int - 1 for update skip locked
      ), taken as (
        update attachment_texts x set tries = tries + 1, claimed_at = clock_timestamp(), claim = $2
        from (select message_row, attachment_id from first union all select * from further) t
        where (x.message_row, x.attachment_id) = (t.message_row, t.attachment_id)
        returning x.message_row, x.attachment_id, x.tries
      ), files as materialized (
        select e.described ->> 'attachmentId' as id, e.described ->> 'filename' as filename,
          e.described ->> 'contentType' as content_type
        from messages m cross join lateral jsonb_array_elements(m.attachments) e (described)
        where m.row = (select message_row from first)
      )
      select t.message_row as "messageRow", t.attachment_id as "attachmentId", t.tries, a.bytes, a.blob,
        coalesce(f.filename, '') as filename, coalesce(f.content_type, '') as "contentType"
      from taken t
      left join message_attachments a on (a.message_row, a.attachment_id) = (t.message_row, t.attachment_id)
      left join files f on f.id = t.attachment_id
      order by length(t.attachment_id), t.attachment_id`,
    values: [projectId, claim, limit],
  })
  return rows.map(({ bytes, blob, ...pending }) => ({
    ...pending,
    stored: { bytes: bytes ?? Buffer.alloc(0), blob },
  }))
}

/**
 * Gives back attachments that a run of the reading job took together with another attachment, but did not begin to
 * read.
 */
export async function giveBackTexts(
  db: Queryable,
  claim: string,
  texts: readonly PendingText[],
): Promise<void> {
  if (texts.length === 0) return
  await db.query({
    name: 'give-back-texts',
    text: `update attachment_texts set tries = greatest(0, tries - 1), claimed_at = null, claim = null
           where message_row = $1 and attachment_id = any ($2) and claim = $3 and state = 'pending'`,
    values: [texts[0]!.messageRow, texts.map(({ attachmentId }) => attachmentId), claim],
  })
}

/**
 * Returns the mail host or the mail provider that sent the attachment which {@link takePendingTexts} would take now.
 * Both are null if an inbox of this service sent the attachment, or if no attachment is free.
 */
export async function findNextSender(
  db: Queryable,
  projectId: string,
): Promise<Pick<InboundMail, 'remoteIp' | 'provider'>> {
  const { rows } = await db.query<Pick<InboundMail, 'remoteIp' | 'provider'>>({
    name: 'find-next-sender',
    text: `
      select i.remote_ip as "remoteIp", i.provider from (
        select message_row from attachment_texts
        where project_id = $1 and state = 'pending' and ${IS_FREE}
          and exists (select from messages m where m.row = message_row and ${IS_ON_ITS_WAY})
        order by message_row limit 1) x
      join inbound_mails i on i.message_row = x.message_row order by i.id limit 1`,
    values: [projectId],
  })
  return rows[0] ?? { remoteIp: null, provider: null }
}

/**
 * Takes back the try that was counted for a run of the reading job, because the run could not begin to read its
 * attachment. For example, the object store was unreachable, or no child process started. Such an outage says nothing
 * about the attachment, so the run must not count as a try.
 */
export async function returnTry(db: Queryable, projectId: string, claim: string): Promise<void> {
  await db.query({
    name: 'return-text-try',
    text: `update attachment_texts set tries = greatest(0, tries - 1)
           where project_id = $1 and claim = $2 and state = 'pending'`,
    values: [projectId, claim],
  })
}

/**
 * Limits how many attachments {@link nextTextAt} reads. The number is high enough, because the running jobs of a
 * project read far fewer attachments at once. At least one of the attachments is therefore free.
 */
const LOOKED_AT_MAX = 1_000
const PENDING = `from attachment_texts x join messages m on m.row = x.message_row
         where x.project_id = $1 and x.state = 'pending'`

/**
 * Returns the time at which the reading job may read a project's next attachment. This time is later if the project has
 * used up its daily limits, or if another run is reading the attachment.
 * @returns null if no attachment of the project waits for reading.
 */
export async function nextTextAt(
  db: Queryable,
  projectId: string,
  { bytes, cpuSeconds }: TextLimits,
): Promise<Date | null> {
  const { rows } = await db.query<{ at: Date | null }>({
    name: 'next-text-at',
    text: `
      select greatest(
        min(coalesce(x.free_at, 'epoch')),
        case when bool_or(r.bytes >= coalesce(l.daily_text_bytes, $2::bigint)
                       or r.cpu_ms >= 1000 * coalesce(l.daily_text_seconds, $3::bigint))
          then ((r.day + 1)::timestamp at time zone 'UTC') end) as at
      from (
        (select x.project_id, x.claimed_at + interval '${CLAIM_SECONDS} seconds' as free_at
         ${PENDING} and ${IS_ON_ITS_WAY} limit ${LOOKED_AT_MAX})
        union all
        (select x.project_id, greatest(m.send_at, clock_timestamp()) + interval '${SCHEDULED_SECONDS} seconds'
         ${PENDING} and m.delivery_status = 'scheduled' order by m.send_at limit 1)) x
      left join attachment_reading r
        on r.project_id = x.project_id and r.day = (clock_timestamp() at time zone 'UTC')::date
      left join project_limits l on l.project_id = x.project_id
      group by r.day`,
    values: [projectId, bytes, cpuSeconds],
  })
  return rows[0]?.at ?? null
}

/** Sets the maximum number of characters of one message and its attachments that the search index covers. */
const SEARCHED_CHARS = 256 * 1024

/**
 * Returns the searchable parts of a received message, with the texts of its attachments. @returns null if the project
 * sent the message, or if the message is deleted.
 */
export async function findSearched(
  db: Queryable,
  messageRow: string,
): Promise<SearchedMail | null> {
  const { rows } = await db.query<Omit<SearchedMail, 'text'> & { texts: string[] }>({
    name: 'find-searched',
    text: `
      select subject, from_addresses as "from", to_addresses || cc_addresses as "to",
        array[left(text_body, ${SEARCHED_CHARS})]
          || array(select d ->> 'filename' from jsonb_array_elements(attachments) d)
          || array(select left(content, ${SEARCHED_CHARS}) from attachment_texts x
                   where x.message_row = m.row and content is not null order by attachment_id limit 50) as texts
      from messages m where row = $1 and direction = 'received'`,
    values: [messageRow],
  })
  const [row] = rows
  if (row === undefined) return null
  const { texts, ...mail } = row
  return { ...mail, text: texts.join('\n').slice(0, SEARCHED_CHARS) }
}

/** Holds the object id of the type `tsvector` in pg_type.dat. */
const TSVECTOR_OID = 3614

/** Stores the binary search vector of a message. */
export async function storeSearched(
  db: Queryable,
  messageRow: string,
  vector: Uint8Array,
): Promise<void> {
  await db.query({
    name: 'store-searched',
    text: 'update messages set search = ($2::tsvector[])[1] where row = $1',
    values: [messageRow, binaryArray(TSVECTOR_OID, [vector])],
  })
}

/** Describes a page of an attachment's text. The field `text` is null until the reading job has read the attachment. */
export type TextPage = {
  filename: string
  contentType: string
  state: 'pending' | 'ready' | 'none' | 'failed'
  kind: string | null
  reason: string | null
  chars: number
  omitted: string[]
  text: string | null
}

/**
 * Returns at most `limit` characters of an attachment's text, beginning at the character `offset`. @returns `'no
 * attachment'` if the message exists but lacks the attachment. Null means that the message does not exist.
 */
export async function findTextPage(
  db: Queryable,
  wanted: Record<'projectId' | 'messageId' | 'attachmentId', string> & {
    offset: number
    limit: number
  },
): Promise<TextPage | 'no attachment' | null> {
  const { projectId, messageId, attachmentId, offset, limit } = wanted
  const { rows } = await db.query<TextPage & { described: boolean }>({
    name: 'find-text-page',
    text: `
      select d.described is not null as described, d.described ->> 'filename' as filename,
        d.described ->> 'contentType' as "contentType", coalesce(x.state, 'none') as state, x.kind, x.reason,
        coalesce(x.chars, 0) as chars, coalesce(x.omitted, '{}') as omitted,
        substr(x.content, $4::int + 1, $5::int) as text
      from messages m
      left join lateral (
        select described from jsonb_array_elements(m.attachments) described
        where described ->> 'attachmentId' = $3) d on true
      left join attachment_texts x on x.message_row = m.row and x.attachment_id = $3
      where m.project_id = $1 and m.message_id_hash = $2`,
    values: [projectId, messageIdHash(messageId), attachmentId, offset, limit],
  })
  const [row] = rows
  if (row === undefined) return null
  const { described, ...page } = row
  return described ? page : 'no attachment'
}

const LOST_BATCH = 100

/** Queues the missing reading jobs of projects that have attachments to read. */
export async function requeueLostReadings(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ project_id: string }>(
    `select distinct project_id from (
       select x.project_id from attachment_texts x join messages m on m.row = x.message_row
       where x.state = 'pending' and (m.delivery_status = 'scheduled' or ${IS_ON_ITS_WAY}) limit 10000) x
     where ${hasNoJob("'read_attachments:' || x.project_id")}
     limit ${LOST_BATCH}`,
  )
  for (const { project_id } of rows) await queueReading(pool, project_id)
  return rows.length
}
