import type { EventPosition } from '../../shared/events/eventId.ts'
import type { EventData, EventType } from '../../shared/events/events.ts'
import type { Queryable } from '../db.ts'
import { deleteInBatches } from '../deleteInBatches.ts'
import { createDeliveries, type NewDelivery, transferEventKey } from './deliveries.ts'

/**
 * Holds the PostgreSQL channel on which the service announces the id of a project that has a new event. A `!` before
 * the project's id means that the API keys of the project or their scopes changed.
 */
export const EVENTS_CHANNEL = 'events'

/** Holds the time for which events are stored, for clients that were offline. */
const RETENTION = '7 days'

export type NewEvent = {
  projectId: string
  type: EventType
  data: EventData
  /**
   * Holds the W3C trace context that the webhooks of the event continue. If it is absent, they continue the trace of
   * the running work.
   */
  traceparent?: string | null
}

/**
 * Stores events and their webhook deliveries in the caller's transaction. A deleted project gets no event, because its
 * data are being erased. Callers call `recordEvents` last in a transaction, because it locks the event streams of the
 * projects until the commit. All events get the same time, which the SQL reads after it has locked the streams.
 * Therefore no event of a project has an earlier time than the event before it.
 */
export async function recordEvents(db: Queryable, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return
  const webhooks = await findWebhooks(db, events)
  const { rows } = await db.query<{ project_id: string; created_at: Date }>({
    name: 'record-events',
    text: `
      with given as (
        select e.* from jsonb_to_recordset($1::jsonb) e (n int, project_id text, type text, data jsonb)
        join projects p on p.id = e.project_id and p.deleted_at is null
      ), added as (
        select project_id, count(*) as count from given group by project_id
      ), streams as (
        insert into event_streams as s (project_id, last_seq)
        select project_id, count from added order by project_id
        on conflict (project_id) do update set last_seq = s.last_seq + excluded.last_seq
        returning project_id, last_seq
      ), moment as materialized (
        -- The statement reads a clock for each event stream after it has locked the stream, so the latest of these
        -- times comes after all locks.
        select max(clock_timestamp())::timestamptz(3) as created_at from streams
      ), stored as (
        insert into events (project_id, seq, type, data, created_at)
        select project_id, last_seq - count + row_number() over (partition by project_id order by n), type, data,
               created_at
        from given join added using (project_id) join streams using (project_id) cross join moment
      )
      select project_id, created_at, pg_notify('${EVENTS_CHANNEL}', project_id) from streams cross join moment`,
    values: [
      JSON.stringify(
        events.map(({ projectId, type, data }, n) => ({ n, project_id: projectId, type, data })),
      ),
    ],
  })
  const times = new Map(rows.map((row) => [row.project_id, row.created_at]))
  const deliveries = events.flatMap((event) => {
    const createdAt = times.get(event.projectId)
    return createdAt === undefined ? [] : deliveriesOf(event, createdAt, webhooks)
  })
  await createDeliveries(db, deliveries)
}

/** Returns the id of the object that an event reports, such as a payment, for the delivery log. */
function subjectOf(data: EventData): string {
  if ('paymentId' in data) return data.paymentId
  if ('purchaseId' in data) return data.purchaseId
  if ('refundOf' in data) return data.refundOf
  if ('mandateId' in data) return data.mandateId
  if ('address' in data) return data.address
  return 'useId' in data ? data.useId : data.messageId
}

/**
 * Returns the id of the payment, the refund or the purchase whose transfer an event reports. Null means that several
 * events of the type can be about the same object.
 */
function transferOf(type: EventType, data: EventData): string | null {
  if ('paymentId' in data) return data.paymentId
  if ('refundId' in data) return data.refundId
  return type === 'purse.paid' && 'purchaseId' in data ? data.purchaseId : null
}

type Webhook = { id: string; project_id: string; url: string; events: EventType[] }

/** Finds the webhooks that receive at least one of the given types of events, in the order of their creation. */
async function findWebhooks(db: Queryable, events: readonly NewEvent[]): Promise<Webhook[]> {
  const { rows } = await db.query<Webhook>({
    name: 'find-webhooks-for-events',
    text: `select id, project_id, url, events from project_webhooks
           where project_id = any ($1) and deleted_at is null and events && $2::text[] order by row`,
    values: [events.map(({ projectId }) => projectId), events.map(({ type }) => type)],
  })
  return rows
}

/** Returns the webhook deliveries of an event to those webhooks of its project that receive its type. */
function deliveriesOf(
  { projectId, type, data, traceparent }: NewEvent,
  createdAt: Date,
  webhooks: readonly Webhook[],
): NewDelivery[] {
  const body = Buffer.from(JSON.stringify({ type, createdAt: createdAt.toISOString(), data }))
  const transferId = transferOf(type, data)
  return webhooks
    .filter((webhook) => webhook.project_id === projectId && webhook.events.includes(type))
    .map(({ id, url }) => ({
      projectId,
      to: { webhookId: id },
      subjectId: subjectOf(data),
      event: type,
      url,
      body,
      traceparent: traceparent ?? null,
      ...(transferId === null
        ? {}
        : { idempotencyKey: transferEventKey({ ownerId: id, event: type, id: transferId }) }),
    }))
}

/**
 * Describes one stored event. The field `seq` is the event's number in the event stream of its project. The field `size`
 * is the length of the event's data in characters.
 */
export type StoredEvent = {
  seq: bigint
  type: EventType
  data: EventData
  size: number
  createdAt: Date
}

/**
 * Lists the events of a project after a given event number, in order. The list ends before the event with which the
 * data would exceed `chars` characters, but holds at least one event. @returns the events, and whether the project has
 * more events after them.
 */
export async function listEvents(
  db: Queryable,
  projectId: string,
  { after, limit, chars }: { after: bigint; limit: number; chars: number },
): Promise<{ events: StoredEvent[]; hasMore: boolean }> {
  const { rows } = await db.query<{
    seq: string
    type: EventType
    data: EventData
    size: number
    created_at: Date
    found: number
  }>({
    name: 'list-events',
    // The recursive query reads one event at each step, and stops at the limit. Otherwise PostgreSQL would unpack the
    // data of all events to find their lengths, which took 180 ms for each page of long events.
    text: `with recursive page as (
             (select seq, type, data, created_at, length(data::text) as size, length(data::text)::bigint as total, 1 as n
              from events where project_id = $1 and seq > $2 order by seq limit 1)
             union all
             select e.seq, e.type, e.data, e.created_at, e.size, p.total + e.size, p.n + 1
             from page p cross join lateral (
               select seq, type, data, created_at, length(data::text) as size from events
               where project_id = $1 and seq > p.seq order by seq limit 1) e
             where p.n <= $3::int and (p.n = 1 or p.total <= $4::bigint)
           )
           select seq, type, data, size, created_at, (select count(*)::int from page) as found from page
           where n = 1 or (n <= $3::int and total <= $4::bigint) order by seq`,
    values: [projectId, after, limit, chars],
  })
  return {
    events: rows.map((row) => ({
      seq: BigInt(row.seq),
      type: row.type,
      data: row.data,
      size: row.size,
      createdAt: row.created_at,
    })),
    hasMore: (rows[0]?.found ?? 0) > rows.length,
  }
}

/** Describes the oldest and the newest event of a project's event stream. */
export type StreamState = {
  /**
   * Holds the position of the newest event in the project's event stream. The number 0 means that the project has no
   * event yet.
   */
  newest: EventPosition
  /**
   * Holds the number of the oldest stored event. If no event of the project is stored, it is the number of the next
   * event.
   */
  oldest: bigint
  /**
   * Holds the time of the last event that the client of an event stream knows. Null means that the database no longer
   * stores this event.
   */
  knownAt: Date | null
}

/**
 * Reads the numbers of the oldest and the newest event in a project's event stream. @param known is the number of the
 * last event that a client knows.
 */
export async function readStream(
  db: Queryable,
  projectId: string,
  known: bigint | null,
): Promise<StreamState> {
  const { rows } = await db.query<{
    newest: string
    newest_at: Date | null
    oldest: string
    known_at: Date | null
  }>({
    name: 'read-stream',
    text: `with stream as (select last_seq from event_streams where project_id = $1)
           select coalesce((select last_seq from stream), 0) as newest,
                  (select created_at from events where project_id = $1 and seq = (select last_seq from stream)) as newest_at,
                  coalesce((select min(seq) from events where project_id = $1),
                    (select last_seq + 1 from stream), 1) as oldest,
                  (select created_at from events where project_id = $1 and seq = $2) as known_at`,
    values: [projectId, known],
  })
  const row = rows[0]!
  return {
    newest: { seq: BigInt(row.newest), at: row.newest_at },
    oldest: BigInt(row.oldest),
    knownAt: row.known_at,
  }
}

/**
 * Finds the last event of a project at or before a given time. If all stored events are later, the function returns the
 * position before the oldest stored event.
 */
export async function findEventAt(
  db: Queryable,
  projectId: string,
  { at, oldest }: { at: Date; oldest: bigint },
): Promise<EventPosition> {
  const { rows } = await db.query<{ seq: string; created_at: Date }>({
    name: 'find-event-at',
    text: `select seq, created_at from events where project_id = $1 and created_at <= $2
           order by seq desc limit 1`,
    values: [projectId, at],
  })
  const row = rows[0]
  return row === undefined
    ? { seq: oldest - 1n, at: null }
    : { seq: BigInt(row.seq), at: row.created_at }
}

/**
 * Ends the open event streams and waiting calls of a project's clients. The caller has replaced or revoked the
 * project's API key, reduced its scopes, or ended the access of an OAuth client.
 */
export async function notifyKeysChanged(db: Queryable, projectId: string): Promise<void> {
  await db.query(`select pg_notify('${EVENTS_CHANNEL}', '!' || $1::text)`, [projectId])
}

/** Deletes events of the event streams that are older than 7 days. */
export async function deleteStaleEvents(db: Queryable): Promise<void> {
  await deleteInBatches(
    db,
    'events',
    `created_at < statement_timestamp() - interval '${RETENTION}'`,
  )
}
