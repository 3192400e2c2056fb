import { keyLifetime } from '../../account/idempotency.ts'
import type { Queryable } from '../../db.ts'
import { OPERATION, type SendIntent } from './sendIntents.ts'

/** Is the state of a send intent's rows in the database. A thread, draft or quota of null does not exist. */
export type LockedIntent = {
  sendPolicy: 'direct' | 'approve' | 'approve-new'
  approvalHours: number
  /** Is the id of the thread that a reply joins. */
  threadId: string | null
  draftVersion: number | null
  /** Counts the recipients that the project has written to on this UTC day. */
  used: number
  /** Tells whether the idempotency key already has a response. */
  keyIsTaken: boolean
  /** Tells whether a recipient needs an approval under approve-new. Under other policies it is false. */
  isToUnknown: boolean
}

export type LockedIntents = {
  /** Is the time at which the send intents are accepted. */
  now: Date
  /** Has one element for each send intent, in order. Null means that the intent's project is deleted. */
  intents: (LockedIntent | null)[]
}

/**
 * Locks the projects, threads, drafts and quotas of send intents until the transaction ends, and reads them. Each kind
 * of row is locked in the order of its keys, so two batches never wait for each other. A share lock on each project
 * prevents its deletion.
 */
export async function lockIntents(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<LockedIntents> {
  const records = intents.map((intent, n) => ({
    n,
    project_id: intent.projectId,
    thread_row: intent.threadRow,
    draft_id: intent.draft?.id ?? null,
    key: intent.key?.name ?? null,
    recipients: recipientsOf(intent),
  }))
  const projects = [...new Set(intents.map(({ projectId }) => projectId))]
  const { rows } = await db.query<LockedRow>({
    name: 'lock-intents',
    text: LOCK_INTENTS,
    values: [
      JSON.stringify(records),
      projects,
      intents.flatMap(({ threadRow }) => threadRow ?? []),
      intents.flatMap(({ draft }) => draft?.id ?? []),
      dailyLimit === null ? [] : projects,
    ],
  })
  const byNumber = new Map(rows.map((row) => [row.n, toLocked(row)]))
  return {
    now: rows[0]?.now ?? new Date(),
    intents: intents.map((_, n) => byNumber.get(n) ?? null),
  }
}

/** Returns the recipients to whom a mail of a send intent goes. Refused recipients are left out. */
export function recipientsOf({ to, cc, bcc, refused }: SendIntent): string[] {
  const left = new Set([...to, ...cc, ...bcc])
  for (const { address } of refused) left.delete(address)
  return [...left]
}

type LockedRow = {
  n: number
  now: Date
  send_policy: LockedIntent['sendPolicy']
  approval_hours: number
  thread_id: string | null
  draft_version: number | null
  used: number
  key_is_taken: boolean
  is_to_unknown: boolean
}

const toLocked = (row: LockedRow): LockedIntent => ({
  sendPolicy: row.send_policy,
  approvalHours: row.approval_hours,
  threadId: row.thread_id,
  draftVersion: row.draft_version,
  used: row.used,
  keyIsTaken: row.key_is_taken,
  isToUnknown: row.is_to_unknown,
})

/**
 * Locks and reads the rows of send intents. The parameters are: $1 intents (jsonb); $2 to $5 the ids of their projects,
 * threads and drafts, and of the projects with a quota.
 */
const LOCK_INTENTS = `
  with live as (
    select id, send_policy, approval_hours from projects
    where id = any ($2::text[]) and deleted_at is null order by id for key share
  ), joined as (
    select row, id from threads where row = any ($3::bigint[]) order by row for no key update
  ), drafted as (
    select project_id, id, version from drafts where id = any ($4::text[]) order by id for update
  ), charged as (
    select project_id, day, used from send_quotas where project_id = any ($5::text[]) order by project_id for update
  )
  select i.n, clock.now, l.send_policy, l.approval_hours, t.id as thread_id, d.version as draft_version,
    case when q.day = (clock.now at time zone 'UTC')::date then q.used else 0 end as used,
    exists (
      select from idempotency_keys k
      where k.project_id = i.project_id and k.operation = '${OPERATION}' and k.key = i.key
        and k.created_at >= clock.now - ${keyLifetime('i.project_id')}) as key_is_taken,
    l.send_policy = 'approve-new' and exists (
      select from unnest(i.recipients) r (address)
      where not exists (
        select from known_recipients k where k.project_id = i.project_id
          and k.recipient in (lower(r.address), '@' || lower(split_part(r.address, '@', 2))))) as is_to_unknown
  from jsonb_to_recordset($1::jsonb)
      as i (n int, project_id text, thread_row bigint, draft_id text, key text, recipients text[])
    cross join (select clock_timestamp()::timestamptz(3) as now) clock
    join live l on l.id = i.project_id
    left join joined t on t.row = i.thread_row
    left join drafted d on d.id = i.draft_id and d.project_id = i.project_id
    left join charged q on q.project_id = i.project_id`
