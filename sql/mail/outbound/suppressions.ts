import type { Cursor } from '../../../shared/cursor.ts'
import type { Queryable } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'

type Reason = 'bounce' | 'rejection' | 'complaint'

/** Describes an email address to which a project must not send mail any more. */
export type Suppression = {
  row: bigint
  address: string
  reason: Reason
  /** Holds the reply of the mail host that refused the recipient. */
  detail: string | null
  /** Holds the id of the message that caused the suppression. Null means that no message caused the suppression. */
  messageId: string | null
  createdAt: Date
}

export type NewSuppression = { address: string; reason: Reason; detail: string | null }

/**
 * Suppresses recipients of a message, so that the project no longer sends mail to these recipients. If an address is
 * already suppressed, the existing suppression stays unchanged.
 */
export async function suppress(
  db: Queryable,
  { projectId, messageRow }: { projectId: string; messageRow: string },
  found: readonly NewSuppression[],
): Promise<void> {
  if (found.length === 0) return
  await db.query({
    name: 'suppress',
    text: `
      insert into suppressions (project_id, address, reason, detail, message_id)
      select $1, lower(s.address), s.reason, s.detail,
        (select message_id from messages where row = $2)
      from unnest($3::text[], $4::text[], $5::text[]) s (address, reason, detail)
      order by lower(s.address)
      on conflict (project_id, address) do nothing`,
    values: [
      projectId,
      messageRow,
      found.map(({ address }) => address),
      found.map(({ reason }) => reason),
      found.map(({ detail }) => detail),
    ],
  })
}

/** Lists the suppressions of a project, newest first, with at most `limit` suppressions after the cursor. */
export async function listSuppressions(
  db: Queryable,
  projectId: string,
  { limit, cursor }: { limit: number; cursor: Cursor | null },
): Promise<Suppression[]> {
  const { rows } = await db.query<{
    row: string
    address: string
    reason: Reason
    detail: string | null
    message_id: string | null
    created_at: Date
  }>({
    name: 'list-suppressions',
    text: `select row, address, reason, detail, message_id, created_at from suppressions
           where project_id = $1 and (created_at, row) < ($2::timestamptz, $3::bigint)
           order by created_at desc, row desc limit $4`,
    values: [projectId, ...pageStart(cursor), limit],
  })
  return rows.map((row) => ({
    row: BigInt(row.row),
    address: row.address,
    reason: row.reason,
    detail: row.detail,
    messageId: row.message_id,
    createdAt: row.created_at,
  }))
}

/** Deletes a suppression. @returns false if the project has no such suppression. */
export async function deleteSuppression(
  db: Queryable,
  projectId: string,
  address: string,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'delete from suppressions where project_id = $1 and address = lower($2)',
    [projectId, address],
  )
  return rowCount === 1
}
