/** Console sign-in: one-time links, and the sessions they start. */
import { createHash, randomBytes } from 'node:crypto'
import { newSessionId } from '../../shared/ids.ts'
import type { Queryable } from '../db.ts'

/** Lifetime of a link. */
export const LINK_MINUTES = 15
/** A session ends this long after its start, or IDLE_HOURS after the operator's last action. */
const SESSION_HOURS = 12
export const IDLE_HOURS = 2

/** Both secrets hold 256 random bits: SHA-256 is enough, a slow hash would add nothing. */
const newSecret = (): string => randomBytes(32).toString('base64url')
const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest()

/** The form of a link's token and of a session's secret. */
export const SECRET_FORM = /^[A-Za-z0-9_-]{43}$/

/** A live session. */
export type ConsoleSession = { id: string; createdAt: Date; expiresAt: Date }

/** Creates a sign-in link. @returns its token; the database holds only the hash. */
export async function createSignInLink(db: Queryable): Promise<string> {
  const token = newSecret()
  await db.query(
    `insert into console_links (token_hash, expires_at)
     values ($1, clock_timestamp() + interval '${LINK_MINUTES} minutes')`,
    [hash(token)],
  )
  return token
}

/** Whether a link was ever used. */
export async function hasSignedIn(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query('select from console_links where used_at is not null limit 1')
  return rowCount === 1
}

/**
 * Uses a link and starts a session, in one statement: of two concurrent uses of a link one signs in.
 * @returns the session and the browser's secret; null: the link is unknown, used or expired.
 */
export async function startSession(
  db: Queryable,
  token: string,
): Promise<{ session: ConsoleSession; secret: string } | null> {
  const secret = newSecret()
  const { rows } = await db.query<ConsoleSession>(
    `with used as (
       update console_links set used_at = clock_timestamp()
       where token_hash = $1 and used_at is null and expires_at > clock_timestamp()
       returning token_hash
     )
     insert into console_sessions (id, secret_hash, expires_at)
     select $2, $3, clock_timestamp() + interval '${SESSION_HOURS} hours' from used
     returning id, created_at as "createdAt", expires_at as "expiresAt"`,
    [hash(token), newSessionId(), hash(secret)],
  )
  return rows[0] === undefined ? null : { session: rows[0], secret }
}

/**
 * The live session of a secret, or null.
 * @param active the operator acted. A page that only refreshes itself must not prolong the session.
 */
export async function findSession(
  db: Queryable,
  secret: string,
  active: boolean,
): Promise<ConsoleSession | null> {
  const { rows } = await db.query<ConsoleSession>({
    name: 'find-console-session',
    text: `
      with found as (
        select id, created_at, expires_at, last_seen_at from console_sessions
        where secret_hash = $1 and expires_at > clock_timestamp()
          and last_seen_at > clock_timestamp() - interval '${IDLE_HOURS} hours'
      ), seen as (
        update console_sessions s set last_seen_at = clock_timestamp() from found f
        where $2 and s.id = f.id and f.last_seen_at < clock_timestamp() - interval '30 seconds'
      )
      select id, created_at as "createdAt", expires_at as "expiresAt" from found`,
    values: [hash(secret), active],
  })
  return rows[0] ?? null
}

/** Ends one session, or all of them. */
export async function endSessions(db: Queryable, id: string | 'all'): Promise<void> {
  await db.query(`delete from console_sessions where $1 in ('all', id)`, [id])
}

/** Deletes expired sessions and links. The newest used link stays: {@link hasSignedIn} reads it. */
export async function deleteStaleSessions(db: Queryable): Promise<void> {
  await db.query(
    `delete from console_sessions where expires_at < clock_timestamp()
       or last_seen_at < clock_timestamp() - interval '${IDLE_HOURS} hours'`,
  )
  await db.query(
    `delete from console_links where expires_at < clock_timestamp()
       and used_at is distinct from (select max(used_at) from console_links)`,
  )
}
