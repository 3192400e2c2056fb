import type { AuthenticationWord } from '../../../shared/mail/parse/authentication.ts'
import { PARSE_BATCH_MAX } from '../../../shared/tasks.ts'
import { BLOB_BYTES, type Blobs } from '../../blobs/blobs.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { packBytes } from '../../packedBytes.ts'
import { addJob, addPayloadsFrom } from '../../queue/jobs.ts'
import { deleteUnusedRawMails } from '../messages/rawMails.ts'

/**
 * Describes the mail provider that delivered a mail to this service over HTTP. The service keeps the provider's SPF
 * result, because it does not know the IP address of the client that sent the mail.
 */
export type MailProvider = { name: string; spf: AuthenticationWord | null }

/** Describes a mail in an SMTP listener's spool (the file of accepted mail). */
export type SpooledMail = {
  /**
   * Holds a key that identifies the spooled mail and never changes. With this key, the database stores a mail only
   * once, even if the mail moves from the spool to the database twice.
   */
  sourceKey: string
  bytes: Uint8Array
  /**
   * Names the object that holds the bytes of the mail. If `blob` is absent or null, the bytes are not in the object
   * store.
   */
  blob?: Buffer | null
  envelopeFrom: string
  /** Lists the inbox addresses that get the mail, in lower case. The list holds at least one inbox address. */
  inboxes: { address: string; envelopeTo: string }[]
  remoteIp: string
  helo: string
  receivedAt: Date
  /**
   * Holds the W3C trace context that the processing of the mail continues. If `traceparent` is absent, the mail has no
   * trace context.
   */
  traceparent?: string | null
  /** Holds the mail provider that delivered the mail over HTTP. If it is absent or null, the mail came by SMTP. */
  provider?: MailProvider | null
  /**
   * Holds the priority of the mail's parse job. Parse jobs with the lowest number run first. If `priority` is absent,
   * the parse job has the priority 0.
   */
  priority?: number
}

/**
 * Sets the number of bytes above which a mail gets its own parse job, because a large mail would delay the other mails
 * of a batch. All mails in the object store are larger than BATCHED_BYTES.
 */
export const BATCHED_BYTES = BLOB_BYTES

const NO_BYTES = new Uint8Array()

/**
 * Stores mails from the spool (the file of accepted mail) and queues their parse jobs. A job parses a batch of mails
 * with the same priority, in which the mails of one inbox follow each other. A large mail, or a mail without others in
 * its batch, gets its own job. A batch has the priority of its first mail.
 */
const ACCEPT = `
  with delivery as (
    select d.source_key, p.id as project_id, d.envelope_from, d.envelope_to, d.remote_ip, d.helo, d.received_at,
      d.traceparent, d.provider
    from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[],
        $12::text[], $15::jsonb[])
      as d (source_key, address, envelope_from, envelope_to, remote_ip, helo, received_at, traceparent, provider)
    join projects p on p.email_address = d.address and p.deleted_at is null
  ), raw as (
    insert into raw_mails (source_key, bytes, blob)
    select s.source_key, substring($2::bytea from s.start for s.length), s.blob
    from unnest($1::uuid[], $10::int[], $11::int[], $13::bytea[]) as s (source_key, start, length, blob)
    where s.source_key in (select source_key from delivery)
    on conflict (source_key) do nothing
    returning id, source_key, blob is not null or octet_length(bytes) > ${BATCHED_BYTES} as is_large
  ), arrived as (
    insert into inbound_mails (
      raw_id, project_id, envelope_from, envelope_to, remote_ip, helo, received_at, traceparent, provider)
    select raw.id, d.project_id, d.envelope_from, d.envelope_to, d.remote_ip, d.helo, d.received_at, d.traceparent,
      d.provider
    from raw join delivery d using (source_key)
    order by d.received_at
    on conflict (raw_id, project_id) do nothing
    returning id, raw_id, project_id
  ), numbered as (
    select a.id, u.priority, case when raw.is_large then -a.id
      else (row_number() over (partition by raw.is_large order by u.priority, a.project_id, a.id) - 1)
        / ${PARSE_BATCH_MAX} end as batch
    from arrived a join raw on raw.id = a.raw_id
    join unnest($1::uuid[], $14::int[]) u (source_key, priority) on u.source_key = raw.source_key
  ), batched as (
    select min(id) as first, count(*) as count, json_agg(id::text order by id) as ids, min(priority) as priority
    from numbered group by batch
  ), jobs as (
    select 'parse_inbound' as task, 'parse_inbound:' || first as key,
      json_build_object('inboundId', first::text) as payload, first, priority
    from batched where count = 1
    union all
    select 'parse_batch', 'parse_batch:' || first || ':' || count, json_build_object('inboundIds', ids), first,
      priority
    from batched where count > 1
    order by first
  )
  ${addPayloadsFrom('jobs', { priority: 's.priority' })}`

/**
 * Stores a batch of spooled mails in one statement: the raw mails, one inbound mail for each inbox, and their parse
 * jobs. If the listener process died before it deleted the mail from its spool, it stores the mail a second time, which
 * changes nothing.
 */
export async function insertInboundMails(db: Queryable, mails: SpooledMail[]): Promise<void> {
  const deliveries = mails.flatMap((mail) =>
    mail.inboxes.map((inbox) => ({ ...inbox, ...mail, inboxes: undefined })),
  )
  const packed = packBytes(mails.map(({ bytes, blob }) => (blob == null ? bytes : NO_BYTES)))
  await db.query({
    name: 'insert-inbound-mails',
    text: ACCEPT,
    values: [
      mails.map((mail) => mail.sourceKey),
      packed.bytes,
      deliveries.map((delivery) => delivery.sourceKey),
      deliveries.map((delivery) => delivery.address),
      deliveries.map((delivery) => delivery.envelopeFrom),
      deliveries.map((delivery) => delivery.envelopeTo),
      deliveries.map((delivery) => delivery.remoteIp),
      deliveries.map((delivery) => delivery.helo),
      deliveries.map((delivery) => delivery.receivedAt),
      packed.starts,
      packed.lengths,
      deliveries.map((delivery) => delivery.traceparent ?? null),
      mails.map(({ blob }) => blob ?? null),
      mails.map(({ priority = 0 }) => priority),
      deliveries.map(({ provider = null }) =>
        provider === null ? null : JSON.stringify(provider),
      ),
    ],
  })
}

/** Describes an inbound mail: a mail for one inbox that the service has not parsed yet. */
export type InboundMail = {
  id: string
  projectId: string
  inboxAddress: string
  rawId: string
  bytes: Buffer
  envelopeFrom: string
  /** Holds the recipient address of the SMTP command RCPT, which is the inbox address with or without a tag. */
  envelopeTo: string
  /** Holds the IP address of the client that sent the mail. Null means that an inbox of this service sent it. */
  remoteIp: string | null
  helo: string | null
  receivedAt: Date
  traceparent: string | null
  /** Holds the mail provider that delivered the mail by HTTP. Null means that the mail came by SMTP. */
  provider: MailProvider | null
}

/**
 * Describes an inbound mail that is larger than the caller accepts. It holds the size of the mail instead of the bytes.
 */
export type LargeInboundMail = Pick<InboundMail, 'id' | 'projectId' | 'remoteIp' | 'provider'> & {
  size: number
}

/**
 * Writes a query that first selects the inbound mails and then joins other tables. Without this order, a query plan
 * that PostgreSQL made for an empty table would read all mails of the inbox.
 */
const findText = (condition: string) => `
  with i as materialized (select * from inbound_mails where ${condition} and state = 'accepted')
  select i.id, i.project_id, p.email_address, i.raw_id, i.envelope_from, i.envelope_to, i.remote_ip, i.helo, i.received_at,
    i.traceparent, i.provider,
    s.size, case when s.size <= $2 then r.bytes end as bytes, r.blob
  from i join raw_mails r on r.id = i.raw_id join projects p on p.id = i.project_id
  left join blobs b on b.hash = r.blob, lateral (select coalesce(b.size, octet_length(r.bytes)) as size) s
  where p.deleted_at is null`

type InboundRow = {
  id: string
  project_id: string
  email_address: string
  raw_id: string
  size: number
  bytes: Buffer | null
  blob: Buffer | null
  envelope_from: string
  envelope_to: string
  remote_ip: string | null
  helo: string | null
  received_at: Date
  traceparent: string | null
  provider: MailProvider | null
}

function toInboundMail(row: InboundRow): InboundMail | LargeInboundMail {
  const { id, bytes, size, provider } = row
  const sharers = { id, projectId: row.project_id, remoteIp: row.remote_ip, provider }
  if (bytes === null) return { ...sharers, size }
  return {
    ...sharers,
    inboxAddress: row.email_address,
    rawId: row.raw_id,
    bytes,
    envelopeFrom: row.envelope_from,
    envelopeTo: row.envelope_to,
    helo: row.helo,
    receivedAt: row.received_at,
    traceparent: row.traceparent,
  }
}

/**
 * Reads an inbound mail that the service has not parsed yet. If the mail has more than `maxBytes`, the function returns
 * only the size of the mail.
 * @returns null if the mail has already been processed, or if its project is deleted.
 * @throws {BlobsAwayError} if the object store is unavailable.
 */
export async function findInboundMail(
  db: Queryable,
  blobs: Blobs,
  inboundId: string,
  maxBytes: number,
): Promise<InboundMail | LargeInboundMail | null> {
  const { rows } = await db.query<InboundRow>({
    name: 'find-inbound-mail',
    text: findText('id = $1'),
    values: [inboundId, maxBytes],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { bytes, blob } = row
  return toInboundMail({ ...row, bytes: bytes === null ? null : await blobs.read({ bytes, blob }) })
}

/**
 * Reads the inbound mails with the given ids in the order of their ids. The function leaves out mails that the service
 * has already processed.
 */
export async function findInboundMails(
  db: Queryable,
  inboundIds: readonly string[],
  maxBytes = BATCHED_BYTES,
): Promise<(InboundMail | LargeInboundMail)[]> {
  const { rows } = await db.query<InboundRow>({
    name: 'find-inbound-mails',
    text: `${findText('id = any ($1::bigint[])')} order by i.id`,
    values: [inboundIds, maxBytes],
  })
  // A mail in the object store is too large for a batch of mails. Therefore the function returns it without its bytes,
  // even if `maxBytes` allows them.
  return rows.map((row) => toInboundMail(row.blob === null ? row : { ...row, bytes: null }))
}

/**
 * Discards an inbound mail that the inbox refuses. The function also deletes the raw mail, unless another inbox
 * received the same raw mail.
 */
export async function discardInboundMail(pool: Pool, inboundId: string): Promise<void> {
  await transaction(pool, async (db) => {
    const { rows } = await db.query<{ raw_id: string }>(
      `update inbound_mails set state = 'discarded' where id = $1 and state = 'accepted' returning raw_id`,
      [inboundId],
    )
    await deleteUnusedRawMails(
      db,
      rows.map(({ raw_id }) => raw_id),
    )
  })
}

/**
 * UNSURE_MAX_MS is the longest time that an inbound mail waits for DNS answers about its sender. UNSURE_STEP_MS is the
 * shortest time between two authentication checks of a mail.
 */
const UNSURE_MAX_MS = 60 * 60_000
const UNSURE_STEP_MS = 30_000

/**
 * Queues another authentication check of an inbound mail's sender. Before each further check, the mail waits as long as
 * it has already waited in total.
 * @param unsureSince is the time of the first check for which DNS gave no answer. The arrival of the mail does not
 * count, because an outage may delay the first check for hours.
 * @returns false if the mail has already waited for an hour. The function then queues no further check.
 */
export async function parseAgainLater(
  db: Queryable,
  { id, unsureSince }: { id: string; unsureSince: Date },
): Promise<boolean> {
  const ageMs = Date.now() - unsureSince.getTime()
  if (ageMs > UNSURE_MAX_MS) return false
  await addJob(db, {
    task: 'parse_inbound',
    payload: { inboundId: id, unsureSince: unsureSince.toISOString() },
    key: `parse_inbound:${id}`,
    inMs: Math.max(UNSURE_STEP_MS, ageMs),
  })
  return true
}
