import { addressKey } from '../../../shared/mail/address.ts'
import { keyLifetime } from '../../account/idempotency.ts'
import type { Queryable } from '../../db.ts'
import { lockOwnEvents } from '../calendar/ownEvents.ts'
import { OPERATION, type SendIntent } from './sendIntents.ts'

/**
 * Holds the stored facts about a send intent (an API request to send or reply). A null `threadId` or `draftVersion`
 * means that the thread or the draft does not exist.
 */
export type LockedIntent = {
  sendPolicy: SendPolicy
  approvalHours: number
  /** Holds the id of the thread that a reply joins. */
  threadId: string | null
  draftVersion: number | null
  /** Counts the recipients to whom the project has sent mail in the present UTC day. */
  used: number
  /** Tells whether the idempotency key of the send intent (the API request to send or reply) already has a response. */
  keyIsTaken: boolean
  /**
   * Under the send policy `approve-new`, tells whether the mail has a recipient whom the project does not know. Under
   * any other send policy, `isToUnknown` is false.
   */
  isToUnknown: boolean
  /** Tells whether the mail's change of a calendar event begins with the present state of the event. */
  isEventCurrent: boolean
}

type SendPolicy = 'direct' | 'approve' | 'approve-new'

export type LockedIntents = {
  /** Holds the time at which the service accepts the send intents (API requests to send or reply). */
  now: Date
  /**
   * Holds one element for each send intent (an API request to send or reply), in the order of the intents. Null means
   * that the project of the send intent is deleted.
   */
  intents: (LockedIntent | null)[]
}

/**
 * Locks the projects, threads, drafts, events and quotas of send intents (API requests to send or reply) until the
 * transaction ends, and reads the locked rows. Each batch locks one table after the other, and the rows of a table in the order of
 * their keys. Therefore two batches never deadlock.
 * @returns null if a project has no quota row (the count of its recipients) for the current UTC day yet. A transaction
 * cannot lock a missing row. The caller then ends the transaction, stores the row with `beginQuotas`, and starts again.
 */
export async function lockIntents(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<LockedIntents | null> {
  const projectIds = [...new Set(intents.map(({ projectId }) => projectId))]
  const { now, projects } = await lockProjects(db, projectIds)
  const threads = await lockThreads(db, intents)
  const drafts = await lockDrafts(db, intents)
  // The statements that end an unsent mail also lock the calendar events before the quotas.
  const current = await lockOwnEvents(db, eventChangesOf(intents))
  const quotas = dailyLimit === null ? null : await lockQuotas(db, [...projects.keys()], now)
  if (quotas !== null && quotas.size < projects.size) return null
  const keys = await findTakenKeys(db, intents, now)
  const strangers = await findIntentsToUnknown(
    db,
    intents.filter(({ projectId }) => projects.get(projectId)?.sendPolicy === 'approve-new'),
  )
  return {
    now,
    intents: intents.map((intent) => {
      const { projectId, threadRow, draft, key, ownEvent = null } = intent
      const project = projects.get(projectId)
      if (project === undefined) return null
      return {
        ...project,
        threadId: threadRow === null ? null : (threads.get(threadRow) ?? null),
        draftVersion: draft === null ? null : (drafts.get(wordOf(projectId, draft.id)) ?? null),
        used: quotas?.get(projectId) ?? 0,
        keyIsTaken: key !== null && keys.has(wordOf(projectId, key.name)),
        isToUnknown: strangers.has(intent),
        isEventCurrent: ownEvent === null || current.has(ownEvent),
      }
    }),
  }
}

/** Stores quota rows (the counts of recipients) for the projects that have none. */
export async function beginQuotas(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number,
): Promise<void> {
  await db.query(
    `insert into send_quotas (project_id, day, used, allowed)
     select id, (clock_timestamp() at time zone 'UTC')::date, 0, $2 from projects
     where id = any ($1) and deleted_at is null order by id
     on conflict do nothing`,
    [intents.map(({ projectId }) => projectId), dailyLimit],
  )
}

/**
 * Returns the recipients of a mail, except the refused ones. Addresses that differ only in upper and lower case count
 * as one recipient.
 */
export function recipientsOf({ to, cc, bcc, refused }: SendIntent): string[] {
  const left = new Map<string, string>()
  for (const address of [...to, ...cc, ...bcc]) {
    if (!left.has(addressKey(address))) left.set(addressKey(address), address)
  }
  for (const { address } of refused) left.delete(addressKey(address))
  return [...left.values()]
}

/** Returns the changes that send intents make to calendar events of their projects. */
export const eventChangesOf = (intents: readonly SendIntent[]) =>
  intents.flatMap(({ projectId, ownEvent, sendAt }) =>
    ownEvent == null ? [] : [{ projectId, ownEvent, sendAt }],
  )

const wordOf = (projectId: string, name: string): string => JSON.stringify([projectId, name])

/**
 * Locks the rows of projects so that no other transaction deletes the projects. The result leaves out projects that are
 * already deleted.
 */
async function lockProjects(db: Queryable, ids: readonly string[]) {
  const { rows } = await db.query<{
    id: string
    now: Date
    sendPolicy: SendPolicy
    approvalHours: number
  }>({
    name: 'lock-sending-projects',
    text: `select id, clock_timestamp()::timestamptz(3) as now, send_policy as "sendPolicy",
             approval_hours as "approvalHours"
           from projects where id = any ($1) and deleted_at is null order by id for key share`,
    values: [ids],
  })
  return {
    now: rows.at(-1)?.now ?? new Date(),
    projects: new Map(
      rows.map(({ id, sendPolicy, approvalHours }) => [id, { sendPolicy, approvalHours }]),
    ),
  }
}

/**
 * Locks the threads of the replies among the send intents (API requests to send or reply). @returns the ids of the
 * threads by their row numbers.
 */
async function lockThreads(
  db: Queryable,
  intents: readonly SendIntent[],
): Promise<Map<string, string>> {
  const wanted = intents.flatMap(({ threadRow }) => threadRow ?? [])
  if (wanted.length === 0) return new Map()
  const { rows } = await db.query<{ row: string; id: string }>({
    name: 'lock-replied-threads',
    text: 'select row, id from threads where row = any ($1::bigint[]) order by row for no key update',
    values: [wanted],
  })
  return new Map(rows.map(({ row, id }) => [row, id]))
}

/**
 * Locks the drafts that the send intents (API requests to send or reply) turn into mails. @returns the version of each
 * draft, by project and draft id.
 */
async function lockDrafts(
  db: Queryable,
  intents: readonly SendIntent[],
): Promise<Map<string, number>> {
  const wanted = intents.flatMap(({ draft }) => draft?.id ?? [])
  if (wanted.length === 0) return new Map()
  const { rows } = await db.query<{ project_id: string; id: string; version: number }>({
    name: 'lock-sent-drafts',
    text: 'select project_id, id, version from drafts where id = any ($1) order by id for update',
    values: [wanted],
  })
  return new Map(rows.map((row) => [wordOf(row.project_id, row.id), row.version]))
}

/** Locks the send quotas of projects. @returns the number of each project's recipients in the present UTC day. */
async function lockQuotas(
  db: Queryable,
  projectIds: readonly string[],
  now: Date,
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ project_id: string; used: number }>({
    name: 'lock-quotas',
    text: `select project_id, case when day >= ($2::timestamptz at time zone 'UTC')::date then used else 0 end as used
           from send_quotas where project_id = any ($1) order by project_id for update`,
    values: [projectIds, now],
  })
  return new Map(rows.map((row) => [row.project_id, row.used]))
}

/** Finds the idempotency keys of send intents (API requests to send or reply) that already have a stored response. */
async function findTakenKeys(
  db: Queryable,
  intents: readonly SendIntent[],
  now: Date,
): Promise<Set<string>> {
  const keyed = intents.flatMap(({ projectId, key }) =>
    key === null ? [] : [{ projectId, name: key.name }],
  )
  if (keyed.length === 0) return new Set()
  const { rows } = await db.query<{ project_id: string; key: string }>({
    name: 'find-taken-send-keys',
    text: `select k.project_id, k.key
           from unnest($1::text[], $2::text[]) g (project_id, key)
             join idempotency_keys k on k.project_id = g.project_id and k.operation = '${OPERATION}' and k.key = g.key
           where k.created_at >= $3::timestamptz - ${keyLifetime('k.project_id')}`,
    values: [keyed.map(({ projectId }) => projectId), keyed.map(({ name }) => name), now],
  })
  return new Set(rows.map((row) => wordOf(row.project_id, row.key)))
}

/**
 * Finds the send intents (API requests to send or reply) with an unknown recipient. A recipient is unknown if the
 * project knows neither the recipient's address nor the recipient's domain.
 */
async function findIntentsToUnknown(
  db: Queryable,
  intents: readonly SendIntent[],
): Promise<Set<SendIntent>> {
  const wanted = intents.flatMap((intent, n) =>
    recipientsOf(intent).map((address) => ({ n, project: intent.projectId, address })),
  )
  if (wanted.length === 0) return new Set()
  const { rows } = await db.query<{ n: number }>({
    name: 'find-unknown-recipients',
    text: `select distinct g.n from unnest($1::int[], $2::text[], $3::text[]) g (n, project_id, address)
           where not exists (
             select from known_recipients k where k.project_id = g.project_id
               and k.recipient in (lower(g.address), '@' || lower(split_part(g.address, '@', 2))))`,
    values: [
      wanted.map(({ n }) => n),
      wanted.map(({ project }) => project),
      wanted.map(({ address }) => address),
    ],
  })
  return new Set(rows.map(({ n }) => intents[n]!))
}
