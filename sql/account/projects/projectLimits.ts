import type { Queryable } from '../../db.ts'

/**
 * Writes an SQL expression for the number of bytes of mail that a project may store. Null means any number. The
 * parameter `limit` is an SQL expression for the service's default limit.
 */
export const storageLimit = (limit: string): string => `coalesce(l.storage_bytes, ${limit})`

/**
 * Holds changes of a project's own limits, which replace the service's default limits. The value null restores the
 * service's default limit.
 */
export type LimitChange = {
  storageBytes?: number | null
  dailySettlements?: number | null
  dailyGas?: number | null
  dailyTextBytes?: number | null
  dailyTextSeconds?: number | null
}

/** Sets the given limits of a project that is not deleted. */
export async function updateLimits(
  db: Queryable,
  projectId: string,
  { storageBytes, dailySettlements, dailyGas, dailyTextBytes, dailyTextSeconds }: LimitChange,
): Promise<void> {
  await db.query(
    `insert into project_limits as l (
       project_id, storage_bytes, daily_settlements, daily_gas, daily_text_bytes, daily_text_seconds)
     values ($1, $2, $4, $6, $8, $10)
     on conflict (project_id) do update set
       storage_bytes = case when $3 then excluded.storage_bytes else l.storage_bytes end,
       daily_settlements = case when $5 then excluded.daily_settlements else l.daily_settlements end,
       daily_gas = case when $7 then excluded.daily_gas else l.daily_gas end,
       daily_text_bytes = case when $9 then excluded.daily_text_bytes else l.daily_text_bytes end,
       daily_text_seconds = case when $11 then excluded.daily_text_seconds else l.daily_text_seconds end`,
    [
      projectId,
      ...[storageBytes ?? null, storageBytes !== undefined],
      ...[dailySettlements ?? null, dailySettlements !== undefined],
      ...[dailyGas ?? null, dailyGas !== undefined],
      ...[dailyTextBytes ?? null, dailyTextBytes !== undefined],
      ...[dailyTextSeconds ?? null, dailyTextSeconds !== undefined],
    ],
  )
}

/**
 * Lists the addresses of the inboxes that have reached their storage limit. @param among selects inboxes by their
 * addresses. Null means that the function lists all full inboxes.
 */
export async function listFullInboxes(
  db: Queryable,
  defaultBytes: number | null,
  among: readonly string[] | null = null,
): Promise<string[]> {
  const { rows } = await db.query<{ email_address: string }>({
    name: 'list-full-inboxes',
    text: `select p.email_address
           from project_storage s join projects p on p.id = s.project_id and p.deleted_at is null
           left join project_limits l on l.project_id = s.project_id
           where s.bytes >= ${storageLimit('$1::bigint')} and ($2::text[] is null or p.email_address = any ($2))`,
    values: [defaultBytes, among],
  })
  return rows.map((row) => row.email_address)
}
