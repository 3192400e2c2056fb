import { newOAuthClientId } from '../../../shared/ids.ts'
import type { ClientMetadata } from '../../../shared/oauth/clientMetadata.ts'
import type { Queryable } from '../../db.ts'
import { replaceable } from '../replaceable.ts'

/**
 * Describes an OAuth client with its metadata. The field `host` is the host of the client's metadata document. A null
 * `host` means that the client registered itself. The service then has verified none of its fields.
 */
export type OAuthClient = ClientMetadata & { id: string; host: string | null }

/**
 * Sets the maximum number of registered OAuth clients without a grant. The number is limited, because anybody can
 * register any number of clients.
 */
const UNUSED_MAX = 10_000
/**
 * Registers an OAuth client. If too many registered clients wait for their first grant, the new client replaces a
 * client of the network that registered the most of them.
 * @param network is the network of the caller.
 * @returns null if too many clients wait for their first grant, and none may be replaced. This is the case if they come
 * from many networks and all are young.
 */
export async function registerClient(
  db: Queryable,
  { name, redirectUris }: ClientMetadata,
  network: string,
): Promise<{ id: string; createdAt: Date } | null> {
  const { rows } = await db.query<{ id: string; createdAt: Date }>(
    `with full_up as (
       select count(*) >= ${UNUSED_MAX} as is_full
       from (select from oauth_clients where used_at is null limit ${UNUSED_MAX}) unused
     ), replaced as (
       delete from oauth_clients where used_at is null and (select is_full from full_up) and id = (
         ${replaceable('oauth_clients', { since: 'created_at', where: 'used_at is null' })})
       returning id
     )
     insert into oauth_clients (id, name, redirect_uris, network)
     select $1, $2, $3, $4 where not (select is_full from full_up) or exists (select from replaced)
     returning id, created_at as "createdAt"`,
    [newOAuthClientId(), name, redirectUris, network],
  )
  return rows[0] ?? null
}

/** Finds a registered OAuth client. */
export async function findRegisteredClient(db: Queryable, id: string): Promise<OAuthClient | null> {
  const { rows } = await db.query<{ id: string; name: string; redirect_uris: string[] }>(
    'select id, name, redirect_uris from oauth_clients where id = $1',
    [id],
  )
  const row = rows[0]
  if (row === undefined) return null
  return { id: row.id, name: row.name, redirectUris: row.redirect_uris, host: null }
}
