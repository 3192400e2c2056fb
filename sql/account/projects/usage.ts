import type { Queryable } from '../../db.ts'

/** Names a project or a platform key, because the service counts the requests of each. */
export type UsageSubject = { kind: 'project' | 'platform'; id: string }
/** Counts the requests of one project or platform key. */
export type UsageCount = UsageSubject & { requests: number; lastUsedAt: Date }

const GIVEN = 'unnest($1::text[], $2::int[], $3::timestamptz[]) n (id, requests, used)'
const ADD = `
  request_count = u.request_count + excluded.request_count,
  last_used_at = greatest(u.last_used_at, excluded.last_used_at)`
const STATEMENTS: Record<UsageSubject['kind'], string> = {
  project: `
    insert into project_usage as u (project_id, request_count, last_used_at)
    select n.id, n.requests, n.used from ${GIVEN} join projects p on p.id = n.id and p.deleted_at is null
    order by n.id
    on conflict (project_id) do update set ${ADD}`,
  platform: `
    insert into platform_key_usage as u (key_id, request_count, last_used_at)
    select k.id, n.requests, n.used from ${GIVEN} join api_keys k on k.id = n.id::bigint
    order by k.id
    on conflict (key_id) do update set ${ADD}`,
}

/**
 * Adds request counts from a process's memory to the counts in the database. The stored time `lastUsedAt` never moves
 * backwards.
 */
export async function addUsage(
  db: Queryable,
  kind: UsageSubject['kind'],
  counts: readonly UsageCount[],
): Promise<void> {
  await db.query(STATEMENTS[kind], [
    counts.map(({ id }) => id),
    counts.map(({ requests }) => requests),
    counts.map(({ lastUsedAt }) => lastUsedAt),
  ])
}

/**
 * Returns the name and the age of a platform key, and the number of its requests. For a person at the console, the
 * parameter `keyId` is empty.
 */
export async function findPlatformKeyUsage(
  db: Queryable,
  keyId: string,
): Promise<{
  name: string | null
  createdAt: Date
  requestCount: number
  lastUsedAt: Date | null
} | null> {
  const { rows } = await db.query<{
    name: string | null
    created_at: Date
    request_count: string | null
    last_used_at: Date | null
  }>(
    `select k.name, k.created_at, u.request_count, u.last_used_at
     from api_keys k left join platform_key_usage u on u.key_id = k.id where k.id = nullif($1, '')::bigint`,
    [keyId],
  )
  const row = rows[0]
  if (row === undefined) return null
  return {
    name: row.name,
    createdAt: row.created_at,
    requestCount: Number(row.request_count ?? 0),
    lastUsedAt: row.last_used_at,
  }
}
