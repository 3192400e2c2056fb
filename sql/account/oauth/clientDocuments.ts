import { createHash } from 'node:crypto'
import type { ClientMetadata } from '../../../shared/oauth/clientMetadata.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'
import { replaceable } from '../replaceable.ts'

/**
 * Describes the stored metadata document of an OAuth client. The field `fault` tells why the last fetch of the document
 * failed.
 */
export type ClientDocument =
  | { state: 'wanted' }
  | ({ state: 'ready'; isFresh: boolean } & ClientMetadata)
  | { state: 'failed'; fault: string }

/**
 * Sets the maximum number of stored client metadata documents. The number is limited, because an unauthenticated
 * request can name any number of URLs.
 */
const DOCUMENTS_MAX = 5_000
/**
 * Sets the number of seconds after which a fetch of a client metadata document has certainly ended, with a result or
 * because its worker process died.
 */
const FETCH_SECONDS = 15

export const documentId = (url: string): string =>
  `ocd_${createHash('sha256').update(url).digest('hex').slice(0, 24)}`

/**
 * Returns a stored client metadata document by its id. @returns null if nobody has requested the client metadata
 * document.
 */
export async function findDocument(db: Queryable, id: string): Promise<ClientDocument | null> {
  const { rows } = await db.query<{
    state: 'wanted' | 'ready' | 'failed'
    name: string
    redirect_uris: string[]
    fault: string | null
    is_fresh: boolean
  }>(
    `select state, name, redirect_uris, fault, coalesce(fresh_until > clock_timestamp(), false) as is_fresh
     from oauth_client_documents where id = $1`,
    [id],
  )
  const row = rows[0]
  if (row === undefined) return null
  if (row.state === 'wanted') return { state: 'wanted' }
  if (row.state === 'failed') return { state: 'failed', fault: row.fault ?? 'the fetch failed' }
  return { state: 'ready', isFresh: row.is_fresh, name: row.name, redirectUris: row.redirect_uris }
}

/**
 * Asks a worker process to fetch a client metadata document. Concurrent requests for the same document share one fetch.
 * If too many documents are stored, the new document replaces a document of the network that requested the most
 * documents.
 * @param document.network is the network of the caller.
 * @returns false if too many client metadata documents are stored, and none may be replaced. This is the case if they
 * come from many networks and all are young.
 */
export async function wantDocument(
  pool: Pool,
  { id, url, network }: { id: string; url: string; network: string },
): Promise<boolean> {
  return transaction(pool, async (db) => {
    const hasRoom = await makeRoom(db, id)
    const { rowCount } = await db.query(
      `insert into oauth_client_documents (id, url, network, state)
       select $1, $2, $4, 'wanted' where $3 or exists (select from oauth_client_documents where id = $1)
       on conflict (id) do update set state = 'wanted', wanted_at = clock_timestamp()
       where oauth_client_documents.state = 'failed'
         or oauth_client_documents.state = 'ready' and oauth_client_documents.fresh_until <= clock_timestamp()
         or oauth_client_documents.wanted_at < clock_timestamp() - interval '${FETCH_SECONDS} seconds'
           and oauth_client_documents.state = 'wanted'`,
      [id, url, hasRoom, network],
    )
    if (rowCount === 1) {
      await queueDocument(db, id)
      return true
    }
    return hasRoom
  })
}

/**
 * Makes room for a client metadata document that is not stored yet. @returns false if there is no room for another
 * client metadata document.
 */
async function makeRoom(db: Queryable, id: string): Promise<boolean> {
  const { rows } = await db.query<{ n: number; known: boolean }>(
    `select count(*)::int as n, exists (select from oauth_client_documents where id = $1) as known
     from (select from oauth_client_documents limit ${DOCUMENTS_MAX}) stored`,
    [id],
  )
  if (rows[0]!.known || rows[0]!.n < DOCUMENTS_MAX) return true
  const { rowCount } = await db.query(
    `delete from oauth_client_documents where id = (
       ${replaceable('oauth_client_documents', { since: 'wanted_at', where: 'true' })})`,
  )
  return rowCount === 1
}

/**
 * Returns the URL of a client metadata document that waits for a fetch. @returns null if no fetch of the document is
 * wanted.
 */
export async function findWantedUrl(db: Queryable, id: string): Promise<string | null> {
  const { rows } = await db.query<{ url: string }>(
    `select url from oauth_client_documents where id = $1 and state = 'wanted'`,
    [id],
  )
  return rows[0]?.url ?? null
}

/** Records the result of a fetch of a client metadata document, and wakes the requests that wait for the document. */
export async function recordDocument(
  db: Queryable,
  id: string,
  found: (ClientMetadata & { freshSeconds: number }) | { fault: string },
): Promise<void> {
  const document = 'fault' in found ? null : found
  await db.query(
    `update oauth_client_documents set state = case when $2::text is null then 'ready' else 'failed' end, fault = $2,
       name = $3, redirect_uris = $4, fresh_until = clock_timestamp() + make_interval(secs => $5)
     where id = $1`,
    [
      id,
      'fault' in found ? found.fault.slice(0, 300) : null,
      document?.name ?? null,
      document?.redirectUris ?? null,
      document?.freshSeconds ?? 0,
    ],
  )
  await db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])
}

/** Queues the fetch of a client metadata document, which begins after `inMs` milliseconds. */
export const queueDocument = (db: Queryable, documentId: string, inMs = 0): Promise<void> =>
  addJob(db, {
    task: 'read_client_document',
    payload: { documentId },
    key: `read_client_document:${documentId}`,
    ...(inMs === 0 ? {} : { inMs }),
  })
