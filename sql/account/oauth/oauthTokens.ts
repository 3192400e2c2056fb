import { isToken, newToken } from '../../../shared/oauth/oauthTokens.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { notifyKeysChanged } from '../../events/events.ts'
import { parseLsn, writtenTo } from '../../operations/replica.ts'
import { writeAudit } from '../audit.ts'
import type { FoundKey } from '../keys/keys.ts'
import { rateWindowUpsert } from '../keys/rateWindows.ts'
import { mayDecide } from '../people/people.ts'

/**
 * The following constants set the lifetimes of OAuth tokens. A refresh token expires REFRESH_DAYS after it was issued,
 * or earlier together with its OAuth grant.
 */
const ACCESS_MINUTES = 60
const REFRESH_DAYS = 30
/**
 * Sets for how many seconds an app may exchange an already exchanged refresh token again. A second exchange is normal
 * if the first response was lost, or if a chat host refreshes tokens in parallel.
 */
const ROTATION_SECONDS = 60
/**
 * The following constants limit how often an app refreshes the tokens of one OAuth grant: REFRESHES_AT_ONCE times, and
 * then once in REFRESH_EVERY_SECONDS. An honest app refreshes about once an hour in each of its processes. A grant then
 * has at most about 46,000 stored tokens, because a refresh token stays stored for 31 days, and an access token for 25
 * hours. A limit on the number of stored tokens would not be safe. With such a limit, a thief could refresh until the
 * service forgets the stolen refresh token, and the use of a forgotten token ends no grant.
 */
const REFRESHES_AT_ONCE = 100
const REFRESH_EVERY_SECONDS = 60

/** Describes a pair of an access token and a refresh token. The access token lasts `accessSeconds` seconds. */
export type TokenPair = {
  access: string
  refresh: string
  accessSeconds: number
  scopes: string[]
  resource: string
}

/** Tells why the service issued no OAuth tokens. */
export type TokenFault = 'invalid_grant' | 'invalid_scope' | 'temporarily_unavailable'

/**
 * Holds the SQL condition for an OAuth grant that still issues tokens. The grant of a deleted OAuth client issues none.
 * Neither does the grant of a person who may no longer decide for the project.
 */
export const LIVE_GRANT = `
  g.revoked_at is null and g.expires_at > clock_timestamp()
  and (g.client_id like 'https://%' or exists (select from oauth_clients c where c.id = g.client_id))
  and exists (select from projects p where p.id = g.project_id and p.deleted_at is null)
  and ${mayDecide('g.person_id', 'g.project_id')}`

type GrantRow = { id: string; grant_scopes: string[]; resource: string; is_live: boolean }

/**
 * Exchanges an authorization code for tokens, which is possible only once (OAuth 2.1 §4.1.3). A second use of the code
 * ends the OAuth grant.
 * @param redirectUri is the redirect URI that the client repeats. Null means that the client repeats no redirect URI.
 * @param isProven gets the stored PKCE challenge, and tells whether the client's code verifier fits that challenge.
 */
export async function exchangeCode(
  pool: Pool,
  {
    code,
    clientId,
    redirectUri,
    isProven,
  }: {
    code: string
    clientId: string
    redirectUri: string | null
    isProven: (challenge: string) => boolean
  },
  requestId: string,
): Promise<TokenPair | TokenFault> {
  if (!isToken(code, 'code')) return 'invalid_grant'
  return transaction(pool, async (db) => {
    const { rows } = await db.query<
      GrantRow & {
        client_id: string
        redirect_uri: string
        challenge: string
        is_used: boolean
        is_fresh: boolean
      }
    >(
      `select g.id, g.scopes as grant_scopes, g.resource, ${LIVE_GRANT} as is_live, c.client_id, c.redirect_uri,
         c.challenge, c.used_at is not null as is_used, c.expires_at > clock_timestamp() as is_fresh
       from oauth_codes c join oauth_grants g on g.id = c.grant_id where c.code_hash = $1 for update of c`,
      [hashSecret(code)],
    )
    const row = rows[0]
    if (row === undefined) return 'invalid_grant'
    if (row.is_used) {
      await endGrant(db, row.id, { requestId, why: 'a code was used again' })
      return 'invalid_grant'
    }
    const fits =
      row.client_id === clientId &&
      (redirectUri === null || row.redirect_uri === redirectUri) &&
      isProven(row.challenge)
    if (!fits || !row.is_live || !row.is_fresh) return 'invalid_grant'
    await db.query('update oauth_codes set used_at = clock_timestamp() where code_hash = $1', [
      hashSecret(code),
    ])
    return await issue(db, row, { access: row.grant_scopes, refresh: row.grant_scopes })
  })
}

/**
 * Exchanges a refresh token for a new token pair (OAuth 2.1 §4.3). The OAuth grant ends if a client uses a refresh
 * token over ROTATION_SECONDS after its first exchange. An app that refreshes too often gets no tokens, and its refresh
 * token stays valid.
 * @param scopes lists the scopes of the new access token, which must be scopes of the old refresh token. Null means all
 * of them.
 */
export async function refreshTokens(
  pool: Pool,
  { token, clientId, scopes }: { token: string; clientId: string; scopes: string[] | null },
  requestId: string,
): Promise<TokenPair | TokenFault> {
  if (!isToken(token, 'refresh')) return 'invalid_grant'
  return transaction(pool, async (db) => {
    const { rows } = await db.query<
      GrantRow & { client_id: string; scopes: string[]; is_fresh: boolean; is_reused: boolean }
    >(
      `select g.id, g.scopes as grant_scopes, g.resource, ${LIVE_GRANT} as is_live, g.client_id, t.scopes,
         t.expires_at > clock_timestamp() as is_fresh,
         coalesce(t.rotated_at < clock_timestamp() - interval '${ROTATION_SECONDS} seconds', false) as is_reused
       from oauth_tokens t join oauth_grants g on g.id = t.grant_id
       where t.token_hash = $1 and t.kind = 'refresh' for update of t`,
      [hashSecret(token)],
    )
    const row = rows[0]
    if (row === undefined || row.client_id !== clientId) return 'invalid_grant'
    if (row.is_reused) {
      await endGrant(db, row.id, { requestId, why: 'a refresh token was used again' })
      return 'invalid_grant'
    }
    if (!row.is_live || !row.is_fresh) return 'invalid_grant'
    const held = row.scopes.filter((scope) => row.grant_scopes.includes(scope))
    if (scopes?.some((scope) => !held.includes(scope))) return 'invalid_scope'
    if (!(await countRefresh(db, row.id))) return 'temporarily_unavailable'
    await db.query(
      'update oauth_tokens set rotated_at = coalesce(rotated_at, clock_timestamp()) where token_hash = $1',
      [hashSecret(token)],
    )
    // The new refresh token keeps the scopes of the old refresh token (RFC 6749 §6).
    return await issue(db, row, { access: scopes ?? held, refresh: held })
  })
}

/** Counts one refresh of the tokens of an OAuth grant. @returns false if the app refreshes too often. */
async function countRefresh(db: Queryable, grantId: string): Promise<boolean> {
  const every = `interval '${REFRESH_EVERY_SECONDS} seconds'`
  const { rowCount } = await db.query(
    `update oauth_grants set
       refreshed_to = greatest(refreshed_to, clock_timestamp() - ${REFRESHES_AT_ONCE} * ${every}) + ${every}
     where id = $1 and (refreshed_to is null or refreshed_to + ${every} <= clock_timestamp())`,
    [grantId],
  )
  return rowCount === 1
}

async function issue(
  db: Queryable,
  grant: GrantRow,
  scopes: { access: string[]; refresh: string[] },
): Promise<TokenPair> {
  const access = newToken('access')
  const refresh = newToken('refresh')
  const { rows } = await db.query<{ seconds: number }>(
    `with issued as (
       insert into oauth_tokens (token_hash, kind, grant_id, scopes, expires_at)
       select t.hash, t.kind, g.id, array(select jsonb_array_elements_text($3::jsonb -> t.kind)),
         least(g.expires_at, clock_timestamp() + t.life::interval)
       from oauth_grants g, unnest($2::bytea[], array['access', 'refresh'],
         array['${ACCESS_MINUTES} minutes', '${REFRESH_DAYS} days']) as t (hash, kind, life)
       where g.id = $1
     )
     select greatest(0, least(${ACCESS_MINUTES * 60}, floor(extract(epoch from g.expires_at - clock_timestamp()))))::int
       as seconds from oauth_grants g where g.id = $1`,
    [grant.id, [hashSecret(access), hashSecret(refresh)], JSON.stringify(scopes)],
  )
  const accessSeconds = rows[0]!.seconds
  return { access, refresh, accessSeconds, scopes: scopes.access, resource: grant.resource }
}

/**
 * Ends an OAuth grant, and writes the end into the audit log of the project. From the next request on, the tokens of
 * the grant are invalid in every process. All calls that wait for mail of the project also end. The housekeeping
 * deletes the tokens later, because an app could collect too many of them. Their deletion here could exceed the
 * statement timeout, which would also undo the end of the grant.
 * @param by names the person who ended the grant. Without a person, the app itself caused the end.
 * @returns false if the grant had ended before.
 */
export async function endGrant(
  db: Queryable,
  grantId: string,
  by: { actor?: string; requestId: string; why?: string },
): Promise<boolean> {
  const { rows } = await db.query<{ project_id: string; client_name: string }>(
    `update oauth_grants set revoked_at = clock_timestamp() where id = $1 and revoked_at is null
     returning project_id, client_name`,
    [grantId],
  )
  const ended = rows[0]
  if (ended === undefined) return false
  await notifyKeysChanged(db, ended.project_id)
  await writeAudit(
    db,
    {
      projectId: ended.project_id,
      keyPrefix: by.actor ?? actorOf(grantId),
      requestId: by.requestId,
    },
    {
      action: 'oauth_grant.revoke',
      subject: grantId,
      detail: by.why === undefined ? ended.client_name : `${ended.client_name}: ${by.why}`,
      outcome: 'ok',
    },
  )
  return true
}

/** Returns the name under which the audit log records an OAuth client. */
const actorOf = (grantId: string): string => `oauth:${grantId}`

/**
 * Revokes a token of an OAuth client (RFC 7009). Revoking a refresh token ends the whole grant. Revoking an access
 * token also ends all calls that wait for mail of the project. Revoking an unknown token changes nothing.
 */
export async function revokeToken(
  pool: Pool,
  { token, clientId }: { token: string; clientId: string },
  requestId: string,
): Promise<void> {
  if (!isToken(token, 'access') && !isToken(token, 'refresh')) return
  await transaction(pool, async (db) => {
    const { rows } = await db.query<{ kind: string; grant_id: string; project_id: string }>(
      `select t.kind, t.grant_id, g.project_id from oauth_tokens t join oauth_grants g on g.id = t.grant_id
       where t.token_hash = $1 and g.client_id = $2`,
      [hashSecret(token), clientId],
    )
    const found = rows[0]
    if (found === undefined) return
    if (found.kind === 'refresh') {
      await endGrant(db, found.grant_id, { requestId, why: 'the app gave its access back' })
      return
    }
    await db.query('delete from oauth_tokens where token_hash = $1', [hashSecret(token)])
    await notifyKeysChanged(db, found.project_id)
  })
}

/** Holds the SQL condition for an OAuth access token that is valid now. */
const LIVE_ACCESS = `t.kind = 'access' and t.expires_at > clock_timestamp() and ${LIVE_GRANT}`
/** Selects the scopes that an OAuth access token still has from its grant. */
const HELD_SCOPES = 'array(select unnest(t.scopes) intersect select unnest(g.scopes))'

type TokenRow = {
  grant_id: string
  project_id: string
  email_address: string
  scopes: string[]
  holds_mail: boolean
  used: number
  resets_at: Date
  written_to: string | null
}

/**
 * Finds the identity of an OAuth access token, and counts the request for the token's project. The service does not
 * cache this identity.
 */
export async function authenticateToken(
  db: Queryable,
  token: string,
  { needsWritten = false }: { needsWritten?: boolean } = {},
): Promise<FoundKey | null> {
  if (!isToken(token, 'access')) return null
  const { rows } = await db.query<TokenRow>({
    name: 'find-oauth-token',
    text: `
      with found as (
        select g.id as grant_id, g.project_id, p.email_address, g.used_at, g.holds_mail,
          ${HELD_SCOPES} as scopes
        from oauth_tokens t join oauth_grants g on g.id = t.grant_id join projects p on p.id = g.project_id
        where t.token_hash = $1 and ${LIVE_ACCESS}
      ), counted as (
        ${rateWindowUpsert('select project_id as subject from found')}
      ), seen as (
        update oauth_grants g set used_at = clock_timestamp() from found f
        where g.id = f.grant_id and (f.used_at is null or f.used_at < clock_timestamp() - interval '1 minute')
      )
      select f.grant_id, f.project_id, f.email_address, f.scopes, f.holds_mail, w.used, w.resets_at,
        ${writtenTo('f.project_id', '$2')} as written_to
      from found f join counted w on w.subject = f.project_id`,
    values: [hashSecret(token), needsWritten],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    identity: {
      kind: 'oauth',
      keyId: row.grant_id,
      keyPrefix: actorOf(row.grant_id),
      projectId: row.project_id,
      inboxAddress: row.email_address,
      scopes: row.scopes,
      holdsMail: row.holds_mail,
    },
    usage: { used: row.used, resetsAt: row.resets_at },
    writtenTo: row.written_to === null ? null : parseLsn(row.written_to),
  }
}

/**
 * Returns the scopes of an OAuth access token. Unlike {@link authenticateToken}, the function counts no request.
 * @returns null if the access token is unknown, revoked or expired, or if its OAuth grant has ended.
 */
export async function findTokenScopes(db: Queryable, token: string): Promise<string[] | null> {
  const { rows } = await db.query<{ scopes: string[] }>({
    name: 'find-token-scopes',
    text: `select ${HELD_SCOPES} as scopes from oauth_tokens t join oauth_grants g on g.id = t.grant_id
           where t.token_hash = $1 and ${LIVE_ACCESS}`,
    values: [hashSecret(token)],
  })
  return rows[0]?.scopes ?? null
}
