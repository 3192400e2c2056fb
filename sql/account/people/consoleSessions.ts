/** Stores the sessions of the console, and the one-time sign-in links that can start a console session. */
import { randomBytes } from 'node:crypto'
import { newSessionId } from '../../../shared/ids.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import type { Queryable } from '../../db.ts'
import { deleteByPages, deleteInBatches } from '../../deleteInBatches.ts'
import { FIRST_OPERATOR, PERSON_COLUMNS, type Person, type PersonRow, toPerson } from './people.ts'

/** Holds the lifetime of a sign-in link in minutes. */
export const LINK_MINUTES = 15
/** Limits the duration of a console session in hours. A session also ends IDLE_HOURS after the person's last action. */
const SESSION_HOURS = 12
export const IDLE_HOURS = 2
const AGENT_MAX_CHARS = 300

/** Makes the secret of a sign-in link or of a console session: 256 random bits. */
const newSecret = (): string => randomBytes(32).toString('base64url')

/**
 * Returns the stored hash of a sign-in link's token or of a console session's secret. For the first operator, the hash
 * has the same form as in release 0.2, so that an upgrade signs nobody out. For all other people, the form differs,
 * because a process of release 0.2 knows no roles and would treat every person as an operator.
 */
const storedHash = (secret: string, personId: string): Buffer =>
  personId === FIRST_OPERATOR ? hashSecret(secret) : hashSecret(`person ${secret}`)

/**
 * Returns both possible hashes of a secret. With them, a query finds the row of a sign-in link or a console session.
 */
const eitherHash = (secret: string): Buffer[] => [
  hashSecret(secret),
  hashSecret(`person ${secret}`),
]

/** Matches the format of a sign-in link's token and of a console session's secret. */
export const SECRET_FORM = /^[A-Za-z0-9_-]{43}$/

/** Tells how a person signed in: by a printed link, a link by mail, a passkey, or the company's identity provider. */
export type SignInMethod = 'link' | 'mail' | 'passkey' | 'company'

/** Describes a live console session of a person. */
export type ConsoleSession = { id: string; person: Person; createdAt: Date; expiresAt: Date }

type SessionRow = PersonRow & { id: string; createdAt: Date; expiresAt: Date }

const toSession = ({ id, createdAt, expiresAt, ...person }: SessionRow): ConsoleSession => ({
  id,
  person: toPerson(person),
  createdAt,
  expiresAt,
})

/**
 * Stores a sign-in link for a person.
 * @param browserHash is the hash of the secret of the browser that requested the sign-in link by mail. Only this
 * browser can use the link. Null means that any browser can use it.
 * @param email is the email address that gets the sign-in link. If the person's address has changed since the request,
 * the function stores no link. Null means that no mail carries the link.
 */
export async function storeSignInLink(
  db: Queryable,
  {
    token,
    personId,
    browserHash,
    email,
  }: { token: string; personId: string; browserHash: Buffer | null; email: string | null },
): Promise<void> {
  // A simultaneous change of the email address waits for this lock on the person's row. It then deletes the sign-in
  // link, which goes to the old address.
  await db.query(
    `insert into console_links (token_hash, person_id, browser_hash, expires_at)
     select $1, pe.id, $3, clock_timestamp() + interval '${LINK_MINUTES} minutes' from people pe
     where pe.id = $2 and ($4::text is null or pe.email = $4) for share
     on conflict do nothing`,
    [storedHash(token, personId), personId, browserHash, email],
  )
}

/**
 * Creates a sign-in link that a command or the log prints. @returns the token of the sign-in link. The database holds
 * only the hash of the sign-in token.
 */
export async function createSignInLink(
  db: Queryable,
  personId: string = FIRST_OPERATOR,
): Promise<string> {
  const token = newSecret()
  await storeSignInLink(db, { token, personId, browserHash: null, email: null })
  return token
}

/** Tells whether anybody has ever used a sign-in link. */
export async function hasSignedIn(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query('select from console_links where used_at is not null limit 1')
  return rowCount === 1
}

/** Describes the browser in which a console session starts. */
export type Browser = {
  /** Holds the secret in the browser's sign-in cookie. Null means that the browser sent no sign-in cookie. */
  secret: string | null
  agent: string | null
}

/**
 * Uses a sign-in link and starts a console session, in one SQL statement. Therefore, if two browsers use a link at the
 * same time, only one of them is signed in.
 * @returns the console session and the secret for the browser's cookie. Null means that the sign-in link is unknown,
 * used, expired or made for another browser.
 */
export async function useSignInLink(
  db: Queryable,
  token: string,
  { secret: browser, agent }: Browser,
): Promise<{ session: ConsoleSession; secret: string } | null> {
  const secret = newSecret()
  const { rows } = await db.query<SessionRow>(
    `with used as (
       update console_links set used_at = clock_timestamp()
       where token_hash = any ($1) and used_at is null and expires_at > clock_timestamp()
         and (browser_hash is null or browser_hash = $4)
       returning person_id, browser_hash
     ), started as (
       insert into console_sessions (id, secret_hash, person_id, method, agent, expires_at)
       select $2, case when person_id = '${FIRST_OPERATOR}' then $3::bytea else $6::bytea end, person_id,
         case when browser_hash is null then 'link' else 'mail' end, $5,
         clock_timestamp() + interval '${SESSION_HOURS} hours' from used
       returning id, person_id, created_at, expires_at
     ), seen as (
       update people set signed_in_at = clock_timestamp() where id in (select person_id from started)
     )
     select s.id, s.created_at as "createdAt", s.expires_at as "expiresAt", ${PERSON_COLUMNS}
     from started s join people pe on pe.id = s.person_id`,
    [
      eitherHash(token),
      newSessionId(),
      hashSecret(secret),
      browser === null ? null : hashSecret(browser),
      agent?.slice(0, AGENT_MAX_CHARS) ?? null,
      hashSecret(`person ${secret}`),
    ],
  )
  return rows[0] === undefined ? null : { session: toSession(rows[0]), secret }
}

/** Describes how a person has proven their identity: by a passkey, or by an account at the identity provider. */
type Proof = { passkeyId: string } | { issuer: string; subject: string }

/**
 * Starts a console session of a person who has proven their identity.
 * @param proof must still belong to the person. A change of the person's email address, which takes it away, runs wholly
 * before or wholly after this statement, because it locks the table of people.
 * @returns null if the person was removed, or has lost the proof, after proving their identity.
 */
export async function startSession(
  db: Queryable,
  {
    personId,
    method,
    agent,
    proof,
  }: { personId: string; method: SignInMethod; agent: string | null; proof?: Proof },
): Promise<{ session: ConsoleSession; secret: string } | null> {
  const secret = newSecret()
  const { rows } = await db.query<SessionRow>(
    `with started as (
       insert into console_sessions (id, secret_hash, person_id, method, agent, expires_at)
       select $1, $2, id, $4, $5, clock_timestamp() + interval '${SESSION_HOURS} hours' from people
       where id = $3
         and ($6::text is null or exists (select from passkeys where credential_id = $6 and person_id = $3))
         and ($7::text is null or oidc_issuer = $7 and oidc_subject = $8)
       returning id, person_id, created_at, expires_at
     ), seen as (
       update people set signed_in_at = clock_timestamp() where id in (select person_id from started)
     )
     select s.id, s.created_at as "createdAt", s.expires_at as "expiresAt", ${PERSON_COLUMNS}
     from started s join people pe on pe.id = s.person_id`,
    [
      newSessionId(),
      storedHash(secret, personId),
      personId,
      method,
      agent?.slice(0, AGENT_MAX_CHARS) ?? null,
      proof !== undefined && 'passkeyId' in proof ? proof.passkeyId : null,
      ...(proof !== undefined && 'issuer' in proof ? [proof.issuer, proof.subject] : [null, null]),
    ],
  )
  return rows[0] === undefined ? null : { session: toSession(rows[0]), secret }
}

/**
 * Finds the live console session that has the given secret. The returned session has the current role and projects of
 * its person.
 * @returns null if no live console session has the given secret.
 * @param active tells that the person has just acted, so that the function prolongs the console session. A page that
 * only refreshes itself does not prolong it.
 */
export async function findSession(
  db: Queryable,
  secret: string,
  active: boolean,
): Promise<ConsoleSession | null> {
  const { rows } = await db.query<SessionRow>({
    name: 'find-console-session',
    text: `
      with found as (
        select id, person_id, created_at, expires_at, last_seen_at from console_sessions
        where secret_hash = any ($1) and expires_at > clock_timestamp()
          and last_seen_at > clock_timestamp() - interval '${IDLE_HOURS} hours'
      ), seen as (
        update console_sessions s set last_seen_at = clock_timestamp() from found f
        where $2 and s.id = f.id and f.last_seen_at < clock_timestamp() - interval '30 seconds'
      )
      select f.id, f.created_at as "createdAt", f.expires_at as "expiresAt", ${PERSON_COLUMNS}
      from found f join people pe on pe.id = f.person_id`,
    values: [eitherHash(secret), active],
  })
  return rows[0] === undefined ? null : toSession(rows[0])
}

/** Describes a console session in a list. */
export type ListedSession = {
  id: string
  personId: string
  name: string
  email: string | null
  method: SignInMethod
  agent: string | null
  createdAt: Date
  lastSeenAt: Date
  expiresAt: Date
}

const SESSIONS_MAX = 500

/**
 * Lists at most 500 live console sessions, the most recently used first.
 * @param personId selects the person whose sessions the list contains. Null means that the function lists the sessions
 * of all people.
 */
export async function listSessions(
  db: Queryable,
  personId: string | null,
): Promise<ListedSession[]> {
  const { rows } = await db.query<ListedSession>(
    `select s.id, s.person_id as "personId", pe.name, pe.email, s.method, s.agent, s.created_at as "createdAt",
       s.last_seen_at as "lastSeenAt", s.expires_at as "expiresAt"
     from console_sessions s join people pe on pe.id = s.person_id
     where ($1::text is null or s.person_id = $1) and s.expires_at > clock_timestamp()
       and s.last_seen_at > clock_timestamp() - interval '${IDLE_HOURS} hours'
     order by s.last_seen_at desc, s.id limit ${SESSIONS_MAX}`,
    [personId],
  )
  return rows
}

/**
 * Ends a console session. @param personId is the person who must own the session. Null means that any person may own
 * it.
 * @returns false if the console session does not exist, or if another person owns the console session.
 */
export async function endSession(
  db: Queryable,
  id: string,
  personId: string | null,
): Promise<boolean> {
  const { rowCount } = await db.query(
    'delete from console_sessions where id = $1 and ($2::text is null or person_id = $2)',
    [id, personId],
  )
  return rowCount === 1
}

/** Ends all console sessions of a person. */
export async function endSessionsOf(db: Queryable, personId: string): Promise<void> {
  await db.query('delete from console_sessions where person_id = $1', [personId])
}

/**
 * Deletes expired sign-in links and console sessions. The function keeps the newest used link, because {@link
 * hasSignedIn} looks for it.
 */
export async function deleteStaleSessions(db: Queryable): Promise<void> {
  await deleteByPages(
    db,
    'console_sessions',
    `expires_at < statement_timestamp()
       or last_seen_at < statement_timestamp() - interval '${IDLE_HOURS} hours'`,
  )
  const { rows } = await db.query<{ last: string | null }>(
    'select max(used_at)::text as last from console_links',
  )
  await deleteByPages(
    db,
    'console_links',
    'expires_at < statement_timestamp() and (used_at is null or used_at < $3::timestamptz)',
    [rows[0]!.last],
  )
  for (const table of ['passkey_challenges', 'company_sign_ins'] as const) {
    await deleteInBatches(db, table, 'expires_at < statement_timestamp()')
  }
  // The service keeps requests for sign-in mails for an hour, because a limit counts the requests of the last hour.
  await deleteInBatches(
    db,
    'sign_in_mails',
    `created_at < statement_timestamp() - interval '1 hour'`,
  )
}
