import { newOAuthGrantId, newOAuthRequestId } from '../../../shared/ids.ts'
import { newToken } from '../../../shared/oauth/oauthTokens.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { writeAudit } from '../audit.ts'
import { mayDecide } from '../people/people.ts'
import { replaceable } from '../replaceable.ts'

/** Describes an OAuth client's request for the owner's consent. */
export type OAuthRequest = {
  id: string
  clientId: string
  clientName: string
  clientHost: string | null
  redirectUri: string
  state: string | null
  challenge: string
  scopes: string[]
  resource: string
}

/** Sets the maximum number of minutes in which an owner must decide on a consent page. */
const REQUEST_MINUTES = 10
/**
 * Sets the number of minutes for which an open request for consent is safe from replacement by a request of another
 * network in a full table. An attacker with 1,112 networks can fill the table. Such an attacker can shorten the time
 * for a decision to this number of minutes, but can block nobody.
 */
const PROTECTED_MINUTES = 3
const CODE_SECONDS = 60
/**
 * Sets the maximum number of stored requests for consent. The number is limited, because anybody can make any number of
 * requests.
 */
const REQUESTS_MAX = 10_000

type Row = {
  id: string
  client_id: string
  client_name: string
  client_host: string | null
  redirect_uri: string
  state: string | null
  challenge: string
  scopes: string[]
  resource: string
}

const toRequest = (row: Row): OAuthRequest => ({
  id: row.id,
  clientId: row.client_id,
  clientName: row.client_name,
  clientHost: row.client_host,
  redirectUri: row.redirect_uri,
  state: row.state,
  challenge: row.challenge,
  scopes: row.scopes,
  resource: row.resource,
})

/**
 * Stores an OAuth client's request for consent. If too many requests are stored, the new request replaces another one.
 * The first choice is a request that is decided or has expired. The next choice is a request of the network with the
 * most requests, and the last choice is the oldest request.
 * @param browser is the secret that the browser's cookie holds.
 * @param network is the network of the caller.
 * @returns null if too many requests for consent are open, and none may be replaced. This is the case if they come from
 * many networks and are younger than PROTECTED_MINUTES.
 */
export async function createRequest(
  db: Queryable,
  browser: string,
  request: Omit<OAuthRequest, 'id'>,
  network: string,
): Promise<string | null> {
  const id = newOAuthRequestId()
  const { rowCount } = await db.query(
    `with full_up as (
       select count(*) >= ${REQUESTS_MAX} as is_full from (select from oauth_requests limit ${REQUESTS_MAX}) stored
     ), replaced as (
       delete from oauth_requests where (select is_full from full_up) and id = (
         ${replaceable('oauth_requests', {
           since: 'expires_at',
           where: 'true',
           over: 'decided_at is not null or expires_at <= clock_timestamp()',
           idle: `expires_at < clock_timestamp() + interval '${REQUEST_MINUTES - PROTECTED_MINUTES} minutes'`,
         })})
       returning id
     )
     insert into oauth_requests (
       id, browser_hash, client_id, client_name, client_host, redirect_uri, state, challenge, scopes, resource, network,
       expires_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, clock_timestamp() + interval '${REQUEST_MINUTES} minutes'
     where not (select is_full from full_up) or exists (select from replaced)`,
    [
      id,
      hashSecret(browser),
      request.clientId,
      request.clientName,
      request.clientHost,
      request.redirectUri,
      request.state,
      request.challenge,
      request.scopes,
      request.resource,
      network,
    ],
  )
  return rowCount === 1 ? id : null
}

const OPEN = `id = $1 and browser_hash = $2 and decided_at is null and expires_at > clock_timestamp()`

/**
 * Finds an OAuth client's open request for consent. @returns null if the request for consent does not exist, was opened
 * by another browser, is decided, or has expired.
 */
export async function findRequest(
  db: Queryable,
  id: string,
  browser: string,
): Promise<OAuthRequest | null> {
  const { rows } = await db.query<Row>(`select * from oauth_requests where ${OPEN}`, [
    id,
    hashSecret(browser),
  ])
  return rows[0] === undefined ? null : toRequest(rows[0])
}

/** Describes the consent of an owner to an OAuth client. */
export type Consent = {
  projectId: string
  scopes: string[]
  redirectHost: string
  expiresAt: Date
  /** Tells whether the mail of the OAuth client waits for the owner's approval. */
  holdsMail: boolean
}

/** Reports that the project of a consent is deleted, or that the person may no longer decide for it. */
export class NotDecidedForError extends Error {}

/**
 * Records the decision about a request for consent, which can be decided only once. If the owner allows it, the
 * function creates an OAuth grant and an authorization code.
 * @param consent describes the rights that the owner allows. A null `consent` means that the owner denies the request.
 * @returns the request for consent, with the authorization code if the owner consents. Null means that the request is
 * no longer open.
 * @throws {NotDecidedForError} if the project is deleted or the person may not decide for the project. The request for
 * consent then stays open.
 */
export async function decideRequest(
  pool: Pool,
  { id, browser, consent }: { id: string; browser: string; consent: Consent | null },
  by: { actor: string; personId: string; requestId: string; organization: string },
): Promise<{ request: OAuthRequest; code: string | null } | null> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<Row>(
      `update oauth_requests set decided_at = clock_timestamp() where ${OPEN} returning *`,
      [id, hashSecret(browser)],
    )
    if (rows[0] === undefined) return null
    const request = toRequest(rows[0])
    const detail = `${request.clientHost ?? request.clientId} ${request.clientName}`.slice(0, 200)
    const actor = { keyPrefix: by.actor, requestId: by.requestId }
    if (consent === null) {
      await writeAudit(
        db,
        { ...actor, projectId: by.organization },
        { action: 'oauth_grant.deny', subject: request.clientId, detail, outcome: 'ok' },
      )
      return { request, code: null }
    }
    // A simultaneous change of the person waits for this lock, and then ends the new OAuth grant.
    await db.query('select from people where id = $1 for share', [by.personId])
    const grantId = newOAuthGrantId()
    const { rowCount } = await db.query(
      `insert into oauth_grants (
         id, project_id, client_id, client_name, client_host, redirect_host, scopes, resource, actor, expires_at, holds_mail, person_id)
       select $1, p.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12 from projects p
       where p.id = $2 and p.deleted_at is null and ${mayDecide('$12', 'p.id')}`,
      [
        grantId,
        consent.projectId,
        request.clientId,
        request.clientName,
        request.clientHost,
        consent.redirectHost,
        consent.scopes,
        request.resource,
        by.actor,
        consent.expiresAt,
        consent.holdsMail,
        by.personId,
      ],
    )
    if (rowCount !== 1) throw new NotDecidedForError()
    const code = newToken('code')
    await db.query(
      `insert into oauth_codes (code_hash, grant_id, client_id, redirect_uri, challenge, expires_at)
       values ($1, $2, $3, $4, $5, clock_timestamp() + interval '${CODE_SECONDS} seconds')`,
      [hashSecret(code), grantId, request.clientId, request.redirectUri, request.challenge],
    )
    await db.query(
      `update oauth_clients set used_at = clock_timestamp(), network = '' where id = $1`,
      [request.clientId],
    )
    await writeAudit(
      db,
      { ...actor, projectId: consent.projectId },
      {
        action: 'oauth_grant.create',
        subject: grantId,
        detail: `${detail}: ${consent.scopes.join(' ')}`.slice(0, 400),
        outcome: 'ok',
      },
    )
    return { request, code }
  })
}
