/**
 * Stores the sign-ins at the company's identity provider (OpenID Connect). Worker processes send the HTTP requests to
 * the identity provider.
 */

import { newCompanySignInId } from '../../../shared/ids.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'
import { replaceable } from '../replaceable.ts'

const MINUTES = 10
/**
 * Sets the maximum number of sign-ins in progress at the identity provider. The number is limited, because anybody can
 * begin any number of sign-ins.
 */
const UNDER_WAY_MAX = 5_000
/**
 * Sets the maximum number of stored sign-ins at the company's identity provider, including ended and expired ones that
 * the next cleaning deletes.
 */
const STORED_MAX = 10 * UNDER_WAY_MAX
/**
 * Sets the number of minutes for which a sign-in is safe from replacement by a sign-in of another network, while no
 * network has many sign-ins. Therefore an attacker with many networks can shorten the time for a sign-in, but can block
 * nobody.
 */
const PROTECTED_MINUTES = 3

/** Selects those sign-ins at the company's identity provider that count as in progress. */
const UNDER_WAY = `expires_at > clock_timestamp() and state in ('asked', 'open')`

/** Describes a sign-in at the company's identity provider that is in progress. */
export type CompanySignIn = {
  id: string
  /**
   * Holds the person of this service who connects an account at the identity provider to their own account. Null means
   * an ordinary sign-in.
   */
  personId: string | null
  state: 'asked' | 'open' | 'answered' | 'done' | 'failed'
  url: string | null
  nonce: string | null
  verifier: string | null
  answer: string | null
  fault: string | null
  issuer: string | null
  subject: string | null
  /** Holds the network of the caller who began the sign-in. */
  network: string
}

const COLUMNS = `id, person_id as "personId", state, url, nonce, verifier, answer, fault, issuer, subject, network`

/**
 * Begins a sign-in at the company's identity provider, and asks a worker process to find the URL of its sign-in page.
 * If too many sign-ins are in progress or stored, a new sign-in of a person without a session replaces another sign-in.
 * The function prefers to replace a sign-in that has failed or expired. Otherwise it replaces a sign-in of the network
 * with the most sign-ins, or else the oldest sign-in.
 * @param network is the network of the caller.
 * @returns null if too many sign-ins are stored, and none may be replaced, because all are young and come from many
 * networks. A person who is already signed in can always begin, because the limit does not count such people.
 */
export async function beginCompanySignIn(
  pool: Pool,
  { browser, personId, network }: { browser: string; personId: string | null; network: string },
): Promise<string | null> {
  return transaction(pool, async (db) => {
    const id = newCompanySignInId()
    const { rowCount } = await db.query(
      `with busy as (
         select count(*) >= ${UNDER_WAY_MAX} as is_busy
         from (select from company_sign_ins where ${UNDER_WAY} limit ${UNDER_WAY_MAX}) under_way
       ), full_up as (
         select is_busy or (select count(*) from (select from company_sign_ins limit ${STORED_MAX}) stored) >= ${STORED_MAX}
           as is_full from busy
       ), replaced as (
         delete from company_sign_ins where $3::text is null and (select is_full from full_up) and id = (
           ${replaceable('company_sign_ins', {
             since: 'expires_at',
             // If too many sign-ins are in progress, the new sign-in must replace a sign-in in progress, because any
             // other replacement makes no room.
             where: `person_id is null and (not (select is_busy from busy) or (${UNDER_WAY}))`,
             over: `state = 'failed' or expires_at <= clock_timestamp()`,
             idle: `expires_at < clock_timestamp() + interval '${MINUTES - PROTECTED_MINUTES} minutes'`,
           })})
         returning id
       )
       insert into company_sign_ins (id, browser_hash, person_id, network, expires_at)
       select $1, $2, $3, $4, clock_timestamp() + interval '${MINUTES} minutes'
       where $3::text is not null or not (select is_full from full_up) or exists (select from replaced)`,
      [id, hashSecret(browser), personId, network],
    )
    if (rowCount !== 1) return null
    await queueSignIn(db, id)
    return id
  })
}

/** Queues the next step of a sign-in at the company's identity provider. The step begins after `inMs` milliseconds. */
export const queueSignIn = (db: Queryable, signInId: string, inMs = 0): Promise<void> =>
  addJob(db, {
    task: 'sign_in_company',
    payload: { signInId },
    key: `sign_in_company:${signInId}`,
    ...(inMs === 0 ? {} : { inMs }),
  })

/** Returns an unexpired sign-in at the company's identity provider for use in a worker process. */
export async function findCompanySignIn(db: Queryable, id: string): Promise<CompanySignIn | null> {
  const { rows } = await db.query<CompanySignIn>(
    `select ${COLUMNS} from company_sign_ins where id = $1 and expires_at > clock_timestamp()`,
    [id],
  )
  return rows[0] ?? null
}

/** Returns an unexpired sign-in at the company's identity provider if the given browser began the sign-in. */
export async function findOwnSignIn(
  db: Queryable,
  id: string,
  browser: string,
): Promise<CompanySignIn | null> {
  const { rows } = await db.query<CompanySignIn>(
    `select ${COLUMNS} from company_sign_ins
     where id = $1 and browser_hash = $2 and expires_at > clock_timestamp()`,
    [id, hashSecret(browser)],
  )
  return rows[0] ?? null
}

/** Records the URL of the identity provider's sign-in page for one sign-in. */
export async function openSignIn(
  db: Queryable,
  id: string,
  page: { url: string; nonce: string; verifier: string },
): Promise<void> {
  await db.query(
    `update company_sign_ins set state = 'open', url = $2, nonce = $3, verifier = $4 where id = $1 and state = 'asked'`,
    [id, page.url, page.nonce, page.verifier],
  )
  await tell(db, id)
}

/**
 * Stores the identity provider's response to a sign-in, which comes through the browser. The function stores only the
 * first response to a sign-in.
 */
export async function answerSignIn(pool: Pool, id: string, answer: string): Promise<void> {
  await transaction(pool, async (db) => {
    const { rowCount } = await db.query(
      `update company_sign_ins set state = 'answered', answer = $2 where id = $1 and state = 'open'`,
      [id, answer],
    )
    if (rowCount === 1) await queueSignIn(db, id)
  })
}

/**
 * Records who signed in at the identity provider, or why the sign-in failed. The function also deletes the provider's
 * answer, the PKCE verifier and the nonce of the sign-in, because no later step needs them.
 */
export async function endSignIn(
  db: Queryable,
  id: string,
  end: { issuer: string; subject: string } | { fault: string },
): Promise<void> {
  const account = 'fault' in end ? null : end
  await db.query(
    `update company_sign_ins set state = $2, fault = $3, issuer = $4, subject = $5, answer = null, verifier = null,
       nonce = null
     where id = $1 and state in ('asked', 'answered')`,
    [
      id,
      account === null ? 'failed' : 'done',
      'fault' in end ? end.fault.slice(0, 300) : null,
      account?.issuer ?? null,
      account?.subject ?? null,
    ],
  )
  await tell(db, id)
}

const tell = (db: Queryable, id: string) =>
  db.query(`select pg_notify('${CHANGES_CHANNEL}', $1)`, [id])

/**
 * Takes the result of a sign-in at the company's identity provider, which can be taken only once.
 * @returns the account, and the person who has connected it. The value `nobody` means that nobody has connected the
 * account. The value `taken` means that the result of the sign-in was used before.
 */
export async function takeSignIn(
  db: Queryable,
  id: string,
): Promise<{ personId: string; issuer: string; subject: string } | 'nobody' | 'taken'> {
  const { rows } = await db.query<{ person_id: string | null; issuer: string; subject: string }>(
    `with taken as (
       delete from company_sign_ins where id = $1 and state = 'done' and person_id is null returning issuer, subject
     )
     select pe.id as person_id, t.issuer, t.subject from taken t
     left join people pe on pe.oidc_issuer = t.issuer and pe.oidc_subject = t.subject`,
    [id],
  )
  if (rows[0] === undefined) return 'taken'
  const { person_id: personId, ...account } = rows[0]
  return personId === null ? 'nobody' : { personId, ...account }
}

/**
 * Connects the account that signed in at the identity provider to the person who began the sign-in. @returns `of_other`
 * if another person has already connected the account, and `taken` if the result of the sign-in was used before.
 */
export async function connectAccount(
  pool: Pool,
  id: string,
  personId: string,
  audit: (db: Queryable) => Promise<void>,
): Promise<'connected' | 'of_other' | 'taken'> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{ issuer: string; subject: string }>(
      `delete from company_sign_ins where id = $1 and state = 'done' and person_id = $2 returning issuer, subject`,
      [id, personId],
    )
    if (rows[0] === undefined) return 'taken'
    const { issuer, subject } = rows[0]
    // Without the lock, two people who connect one account at the same moment would violate a unique index.
    await db.query(
      `select pg_advisory_xact_lock(hashtextextended('account ' || $1 || ' ' || $2, 0))`,
      [issuer, subject],
    )
    const { rowCount } = await db.query(
      `update people set oidc_issuer = $2, oidc_subject = $3 where id = $1
         and not exists (select from people where oidc_issuer = $2 and oidc_subject = $3 and id <> $1)`,
      [personId, issuer, subject],
    )
    if (rowCount !== 1) return 'of_other'
    await audit(db)
    return 'connected'
  })
}

/** Disconnects a person's account at the identity provider. @returns false if the person had no connected account. */
export async function disconnectAccount(db: Queryable, personId: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `update people set oidc_issuer = null, oidc_subject = null where id = $1 and oidc_subject is not null`,
    [personId],
  )
  return rowCount === 1
}

/**
 * Returns the issuer (OpenID Connect) of a person's connected account at the identity provider. Null means that the
 * person has connected no account.
 */
export async function findAccount(db: Queryable, personId: string): Promise<string | null> {
  const { rows } = await db.query<{ issuer: string | null }>(
    'select oidc_issuer as issuer from people where id = $1',
    [personId],
  )
  return rows[0]?.issuer ?? null
}
