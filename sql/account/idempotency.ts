import type { Queryable } from '../db.ts'
import { lifetimeOf } from './projects/retention.ts'

/**
 * Writes an SQL expression for the lifetime of a project's idempotency keys, which is at least a day (docs/contract.md
 * §4, §6). The parameter `project` is an SQL expression for the project.
 */
export const keyLifetime = (project: string): string => lifetimeOf('idempotencyKeys', project)

/**
 * Reserves an idempotency key for an HTTP request, or finds the earlier HTTP request that has reserved the same key.
 * @returns the hash of the HTTP request that has reserved the idempotency key, and the stored response. The response is
 * null while this request is in progress.
 */
export async function beginIdempotent(
  db: Queryable,
  request: { projectId: string; operation: string; key: string; hash: Buffer },
): Promise<{ requestHash: Buffer; result: string | null }> {
  const { rows } = await db.query<{ request_hash: Buffer; result: string | null }>({
    name: 'begin-idempotent',
    text: `
      insert into idempotency_keys as k (project_id, operation, key, request_hash) values ($1, $2, $3, $4)
      on conflict (project_id, operation, key) do update set
        request_hash = case when k.created_at < clock_timestamp() - ${keyLifetime('$1')}
                            then excluded.request_hash else k.request_hash end,
        result = case when k.created_at < clock_timestamp() - ${keyLifetime('$1')} then null else k.result end,
        created_at = case when k.created_at < clock_timestamp() - ${keyLifetime('$1')}
                          then clock_timestamp() else k.created_at end
      returning request_hash, result`,
    values: [request.projectId, request.operation, request.key, request.hash],
  })
  return { requestHash: rows[0]!.request_hash, result: rows[0]!.result }
}

/**
 * Returns the hash of the HTTP request that has reserved an idempotency key, and the stored response.
 * @returns null if the idempotency key is unknown or expired.
 */
export async function findIdempotent(
  db: Queryable,
  { projectId, operation, key }: { projectId: string; operation: string; key: string },
): Promise<{ requestHash: Buffer; result: string | null } | null> {
  const { rows } = await db.query<{ request_hash: Buffer; result: string | null }>({
    name: 'find-idempotent',
    text: `select request_hash, result from idempotency_keys
           where project_id = $1 and operation = $2 and key = $3
             and created_at >= clock_timestamp() - ${keyLifetime('$1')}`,
    values: [projectId, operation, key],
  })
  const row = rows[0]
  return row === undefined ? null : { requestHash: row.request_hash, result: row.result }
}

/** Frees an idempotency key that an HTTP request has reserved, unless the key has a stored response. */
export async function freeIdempotent(
  db: Queryable,
  request: { projectId: string; operation: string; key: string; hash: Buffer },
): Promise<void> {
  await db.query({
    name: 'free-idempotent',
    text: `delete from idempotency_keys
           where project_id = $1 and operation = $2 and key = $3 and request_hash = $4 and result is null`,
    values: [request.projectId, request.operation, request.key, request.hash],
  })
}
