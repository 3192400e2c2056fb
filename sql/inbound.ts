import { newThreadId } from '../shared/ids.ts'
import type { ReceivedMail } from '../shared/receivedMail.ts'
import {
  alternativeMessageId,
  ancestors,
  messageIdHash,
  type ThreadLinks,
} from '../shared/threading.ts'
import { type Pool, type Queryable, transaction } from './db.ts'
import { insertMessage } from './insertMessage.ts'
import { addJobsFrom } from './jobs.ts'

/** One message as it lies in an SMTP listener's spool. */
export type SpooledMail = {
  /** Names the message for good: moved twice, it arrives once. */
  sourceKey: string
  bytes: Uint8Array
  envelopeFrom: string
  /** Inbox addresses in lower case, at least one. */
  inboxes: { address: string; envelopeTo: string }[]
  remoteIp: string
  helo: string
  receivedAt: Date
}

const ACCEPT = `
  with delivery as (
    select d.source_key, p.id as project_id, d.envelope_from, d.envelope_to, d.remote_ip, d.helo, d.received_at
    from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::timestamptz[])
      as d (source_key, address, envelope_from, envelope_to, remote_ip, helo, received_at)
    join projects p on p.email_address = d.address and p.deleted_at is null
  ), raw as (
    insert into raw_mails (source_key, bytes)
    select s.source_key, s.bytes from unnest($1::uuid[], $2::bytea[]) as s (source_key, bytes)
    where s.source_key in (select source_key from delivery)
    on conflict (source_key) do nothing
    returning id, source_key
  ), arrived as (
    insert into inbound_mails (raw_id, project_id, envelope_from, envelope_to, remote_ip, helo, received_at)
    select raw.id, d.project_id, d.envelope_from, d.envelope_to, d.remote_ip, d.helo, d.received_at
    from raw join delivery d using (source_key)
    order by d.received_at
    on conflict (raw_id, project_id) do nothing
    returning id::text as payload_id
  )
  ${addJobsFrom('arrived', 'parse_inbound', 'inboundId')}`

/**
 * Takes a batch of messages out of a spool: bytes, one arrival per inbox and its parse job, in one statement. A message
 * that is already here, because the listener died before it could delete it, changes nothing.
 */
export async function acceptSpooledMails(db: Queryable, mails: SpooledMail[]): Promise<void> {
  const deliveries = mails.flatMap((mail) =>
    mail.inboxes.map((inbox) => ({ ...inbox, ...mail, inboxes: undefined })),
  )
  await db.query({
    name: 'accept-spooled-mails',
    text: ACCEPT,
    values: [
      mails.map((mail) => mail.sourceKey),
      mails.map((mail) => Buffer.from(mail.bytes.buffer, mail.bytes.byteOffset, mail.bytes.length)),
      deliveries.map((delivery) => delivery.sourceKey),
      deliveries.map((delivery) => delivery.address),
      deliveries.map((delivery) => delivery.envelopeFrom),
      deliveries.map((delivery) => delivery.envelopeTo),
      deliveries.map((delivery) => delivery.remoteIp),
      deliveries.map((delivery) => delivery.helo),
      deliveries.map((delivery) => delivery.receivedAt),
    ],
  })
}

/** An arrival that waits to be parsed. */
export type Arrival = {
  id: string
  projectId: string
  inboxAddress: string
  rawId: string
  bytes: Buffer
  receivedAt: Date
}

/** The arrival, or null when it was dealt with or its project is gone. */
export async function findArrival(db: Queryable, inboundId: string): Promise<Arrival | null> {
  const { rows } = await db.query<{
    id: string
    project_id: string
    email_address: string
    raw_id: string
    bytes: Buffer
    received_at: Date
  }>({
    name: 'find-arrival',
    text: `select i.id, i.project_id, p.email_address, i.raw_id, r.bytes, i.received_at
           from inbound_mails i join raw_mails r on r.id = i.raw_id join projects p on p.id = i.project_id
           where i.id = $1 and i.state = 'accepted' and p.deleted_at is null`,
    values: [inboundId],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    id: row.id,
    projectId: row.project_id,
    inboxAddress: row.email_address,
    rawId: row.raw_id,
    bytes: row.bytes,
    receivedAt: row.received_at,
  }
}

/** What became of an arrival. */
export type StoreOutcome = 'stored' | 'retransmission' | 'gone'

/**
 * Stores a parsed message in its inbox and thread, and settles the arrival, in one transaction. The project's row is
 * the inbox's lock: two messages of one inbox never decide on a thread or an identifier at the same time.
 */
export async function storeReceived(
  pool: Pool,
  arrival: Arrival,
  mail: ReceivedMail,
): Promise<StoreOutcome> {
  return transaction(pool, async (db) => {
    const inbox = await db.query(
      'select from projects where id = $1 and deleted_at is null for no key update',
      [arrival.projectId],
    )
    const waiting = await db.query(
      `select from inbound_mails where id = $1 and state = 'accepted' for update`,
      [arrival.id],
    )
    if (inbox.rowCount === 0 || waiting.rowCount === 0) return 'gone'

    const earlier = await db.query<{ row: string }>(
      `select row from messages where project_id = $1 and content_hash = $2 and direction = 'received'`,
      [arrival.projectId, mail.contentHash],
    )
    if (earlier.rows[0] !== undefined) {
      await settleArrival(db, arrival.id, 'retransmission', earlier.rows[0].row)
      return 'retransmission'
    }

    const messageId = await freeMessageId(db, arrival.projectId, mail.links.messageId)
    const threadRow = await joinThread(db, arrival, mail)
    const row = await insertMessage(db, {
      projectId: arrival.projectId,
      threadRow,
      rawId: arrival.rawId,
      messageId,
      createdAt: arrival.receivedAt,
      mail,
    })
    await settleArrival(db, arrival.id, 'stored', row)
    return 'stored'
  })
}

async function settleArrival(
  db: Queryable,
  id: string,
  state: 'stored' | 'retransmission',
  messageRow: string,
): Promise<void> {
  await db.query('update inbound_mails set state = $2, message_row = $3 where id = $1', [
    id,
    state,
    messageRow,
  ])
}

/** The Message-ID itself, or, when another message of this inbox holds it, the next free alternative (contract §4). */
async function freeMessageId(db: Queryable, projectId: string, wanted: string): Promise<string> {
  for (let n = 0; ; n++) {
    const candidate = n === 0 ? wanted : alternativeMessageId(wanted, n)
    const { rowCount } = await db.query(
      'select from messages where project_id = $1 and message_id_hash = $2',
      [projectId, messageIdHash(candidate)],
    )
    if (rowCount === 0) return candidate
  }
}

/** Finds the thread a message belongs to, by its own identifier and its ancestors', or starts one. Counts it in. */
async function joinThread(db: Queryable, arrival: Arrival, mail: ReceivedMail): Promise<string> {
  const known = await threadOf(db, arrival.projectId, mail.links)
  const threadRow = known ?? (await startThread(db, arrival, mail.subject))
  await db.query(
    `update threads set message_count = message_count + 1, updated_at = greatest(updated_at, $2)
     where row = $1`,
    [threadRow, arrival.receivedAt],
  )
  await rememberIdentifiers(db, arrival.projectId, threadRow, mail.links)
  return threadRow
}

async function threadOf(
  db: Queryable,
  projectId: string,
  links: ThreadLinks,
): Promise<string | null> {
  const hashes = [...ancestors(links), links.messageId].map(messageIdHash)
  const { rows } = await db.query<{ thread_row: string }>({
    name: 'find-thread-by-identifiers',
    text: `select t.thread_row from unnest($2::bytea[]) with ordinality h (hash, nearness)
           join thread_identifiers t on t.project_id = $1 and t.message_id_hash = h.hash
           order by h.nearness limit 1`,
    values: [projectId, hashes],
  })
  return rows[0]?.thread_row ?? null
}

async function startThread(db: Queryable, arrival: Arrival, subject: string): Promise<string> {
  const { rows } = await db.query<{ row: string }>(
    `insert into threads (id, project_id, subject, created_at, updated_at) values ($1, $2, $3, $4, $4)
     returning row`,
    [newThreadId(), arrival.projectId, subject, arrival.receivedAt],
  )
  return rows[0]!.row
}

async function rememberIdentifiers(
  db: Queryable,
  projectId: string,
  threadRow: string,
  links: ThreadLinks,
): Promise<void> {
  const hashes = [links.messageId, ...ancestors(links)].map(messageIdHash)
  await db.query({
    name: 'remember-identifiers',
    text: `insert into thread_identifiers (project_id, message_id_hash, thread_row)
           select $1, h, $3 from unnest($2::bytea[]) h on conflict do nothing`,
    values: [projectId, hashes, threadRow],
  })
}
