import type { Cursor } from '../../../shared/cursor.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'
import { endGrant, LIVE_GRANT } from './oauthTokens.ts'

/** Describes the access that an owner has granted to an OAuth client. */
export type OAuthGrant = {
  row: bigint
  id: string
  projectId: string
  projectName: string
  inboxAddress: string
  clientName: string
  /** Holds the verified host of the OAuth client. Null means that the client registered itself. */
  clientHost: string | null
  redirectHost: string
  scopes: string[]
  holdsMail: boolean
  actor: string
  createdAt: Date
  expiresAt: Date
  usedAt: Date | null
}

/**
 * Lists the live OAuth grants, newest first.
 * @param filter.projectIds selects the projects whose grants the list contains. Null means every project.
 */
export async function listGrants(
  db: Queryable,
  {
    projectIds,
    limit,
    cursor,
  }: { projectIds: readonly string[] | null; limit: number; cursor: Cursor | null },
): Promise<OAuthGrant[]> {
  const { rows } = await db.query<Omit<OAuthGrant, 'row'> & { row: string }>(
    `select g.row, g.id, g.project_id as "projectId", p.name as "projectName", p.email_address as "inboxAddress",
       g.client_name as "clientName", g.client_host as "clientHost", g.redirect_host as "redirectHost", g.scopes,
       g.holds_mail as "holdsMail", g.actor,
       g.created_at as "createdAt", g.expires_at as "expiresAt", g.used_at as "usedAt"
     from oauth_grants g join projects p on p.id = g.project_id
     where ${LIVE_GRANT} and ($1::text[] is null or g.project_id = any ($1))
       and (g.created_at, g.row) < ($2::timestamptz, $3::bigint)
     order by g.created_at desc, g.row desc limit $4`,
    [projectIds, ...pageStart(cursor), limit],
  )
  return rows.map(({ row, ...grant }) => ({ row: BigInt(row), ...grant }))
}

/**
 * Ends an OAuth grant at once. @param projectIds limits the call to grants of these projects. Null means every project.
 * @returns false if the projects have no live OAuth grant with the id.
 */
export async function revokeGrant(
  pool: Pool,
  { grantId, projectIds }: { grantId: string; projectIds: readonly string[] | null },
  by: { actor: string; requestId: string },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `select from oauth_grants where id = $1 and ($2::text[] is null or project_id = any ($2))`,
      [grantId, projectIds],
    )
    return rowCount === 1 && (await endGrant(db, grantId, by))
  })
}
