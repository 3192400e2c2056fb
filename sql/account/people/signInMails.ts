/**
 * Stores requests for a sign-in link by mail, even if no person has the email address, because the response must not
 * reveal whether such a person exists.
 */

import { newSignInMailId } from '../../../shared/ids.ts'
import { hashSecret } from '../../../shared/secretHash.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'
import { LINK_MINUTES } from './consoleSessions.ts'

/**
 * MAILS_PER_HOUR limits how many sign-in mails one email address gets in an hour. KNOWN_PER_HOUR limits the requests
 * from a browser in which the person has signed in before. With this separate limit, others cannot keep the person out.
 * REQUESTS_MAX limits the stored requests from all other browsers.
 */
const MAILS_PER_HOUR = 10
const KNOWN_PER_HOUR = 20
const REQUESTS_MAX = 20_000
/** Sets the time after which the service sends a sign-in mail again if the recipient's mail host deferred the mail. */
const RETRY_SECONDS = 30

/**
 * Selects the oldest request if it is older than ten minutes. The query does not read the table of people, because
 * otherwise the response time would reveal whether an address belongs to a person.
 */
const REPLACEABLE = `
  select id from sign_in_mails
  where created_at <= clock_timestamp() - interval '10 minutes'
  order by created_at limit 1 for update skip locked`

/**
 * Requests a sign-in link by mail. If an address gets too many sign-in mails, the service sends no mail but gives the
 * browser the same response. If too many requests are stored, a new request replaces the oldest one if this is older
 * than ten minutes. An attacker who wants to keep new browsers out must therefore fill the table every ten minutes,
 * with 2,000 requests a minute.
 * @param email is the person's email address in lower case.
 * @param isKnown tells whether the person has signed in with this browser before.
 */
export async function askSignInMail(
  pool: Pool,
  { email, browser, isKnown }: { email: string; browser: string; isKnown: boolean },
): Promise<void> {
  await transaction(pool, async (db) => {
    const id = newSignInMailId()
    // Concurrent requests for one email address wait for the advisory lock. Therefore each request counts all earlier
    // ones.
    await db.query(`select pg_advisory_xact_lock(hashtextextended('sign-in mail ' || $1, 0))`, [
      email,
    ])
    const { rowCount } = await db.query(
      `with allowed as (
         select count(*) < $4 as is_allowed from sign_in_mails
         where email = $2 and created_at > clock_timestamp() - interval '1 hour'
       ), full_up as (
         select count(*) >= ${REQUESTS_MAX} as is_full from (select from sign_in_mails limit ${REQUESTS_MAX}) stored
       ), replaced as (
         delete from sign_in_mails
         where (select is_allowed from allowed) and (select is_full from full_up) and id = (${REPLACEABLE})
         returning id
       )
       insert into sign_in_mails (id, email, browser_hash, expires_at)
       select $1, $2, $3, clock_timestamp() + interval '${LINK_MINUTES} minutes' from allowed, full_up
       where is_allowed and ($5 or not is_full or exists (select from replaced))`,
      [id, email, hashSecret(browser), isKnown ? KNOWN_PER_HOUR : MAILS_PER_HOUR, isKnown],
    )
    if (rowCount === 1) await addMailJob(db, id)
  })
}

const addMailJob = (db: Queryable, requestId: string, inMs?: number) =>
  addJob(db, {
    task: 'mail_sign_in_link',
    payload: { requestId },
    key: `mail_sign_in_link:${requestId}`,
    ...(inMs === undefined ? {} : { inMs }),
  })

/**
 * Queues the mail with a sign-in link again, because too many mails to the same mail host or smarthost are already in
 * progress.
 */
export const queueSignInMail = (db: Queryable, requestId: string, inMs: number): Promise<void> =>
  addMailJob(db, requestId, inMs)

/** Describes a sign-in link that a worker process must send by mail. */
export type WantedSignInMail = {
  personId: string
  name: string
  email: string
  browserHash: Buffer
  createdAt: Date
  expiresAt: Date
}

/**
 * Returns the facts that a worker process needs for a requested sign-in mail.
 * @returns null if the request is done or has expired, or if no person has the email address.
 */
export async function findSignInMail(db: Queryable, id: string): Promise<WantedSignInMail | null> {
  const { rows } = await db.query<WantedSignInMail>(
    `select pe.id as "personId", pe.name, pe.email, m.browser_hash as "browserHash", m.created_at as "createdAt",
       m.expires_at as "expiresAt"
     from sign_in_mails m join people pe on pe.email = m.email
     where m.id = $1 and m.done_at is null and m.expires_at > clock_timestamp()`,
    [id],
  )
  return rows[0] ?? null
}

/**
 * Records an attempt to send a sign-in mail.
 * @param isDeferred tells that the recipient's mail host asked for another attempt later. After the expiry of a sign-in
 * link, the service makes no further attempt. If another run of the job has already ended the request, the function
 * changes nothing.
 */
export async function recordSignInMail(pool: Pool, id: string, isDeferred: boolean): Promise<void> {
  await transaction(pool, async (db) => {
    const { rows } = await db.query<{ done: boolean }>(
      `update sign_in_mails set done_at = case
         when $2 and expires_at > clock_timestamp() + interval '${RETRY_SECONDS} seconds' then null
         else clock_timestamp() end
       where id = $1 and done_at is null returning done_at is not null as done`,
      [id, isDeferred],
    )
    if (rows[0]?.done === false) await addMailJob(db, id, RETRY_SECONDS * 1000)
  })
}
