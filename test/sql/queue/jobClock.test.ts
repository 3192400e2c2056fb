/**
 * Tests that a job which waits is due at the right moment of the database's clock, even if the clock of the machine that
 * queued it is wrong. The database decides when a job is due.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setSystemTime, test } from 'bun:test'
import { newSignInMailId } from '../../../shared/ids.ts'
import { queueDocument } from '../../../sql/account/oauth/clientDocuments.ts'
import { queueSignIn } from '../../../sql/account/people/companySignIns.ts'
import { queueSignInMail, recordSignInMail } from '../../../sql/account/people/signInMails.ts'
import type { Pool } from '../../../sql/db.ts'
import { queueAnnouncement } from '../../../sql/mail/approval/heldAnnouncements.ts'
import { parseAgainLater } from '../../../sql/mail/inbound/inboundMails.ts'
import { queueSearchable } from '../../../sql/mail/messages/attachmentTexts.ts'
import { postponePayments } from '../../../sql/till/settle/settlementQueue.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { begin, newSent, recordSent } from '../../support/mail/mailRows.ts'
import { newPayment } from '../../support/till/tillRows.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterEach(() => setSystemTime())
afterAll(() => database[Symbol.asyncDispose]())

const ID = '0a1b2c3d4e5f60718293a4b5'
const HOUR_MS = 3_600_000
const WAIT_MS = 60_000

/** Returns the milliseconds until the job with the given key is due. */
async function waitMs(key: string): Promise<number> {
  const { rows } = await database.pool.query(
    `select extract(epoch from run_at - clock_timestamp())::float8 * 1000 as ms from graphile_worker.jobs where key = $1`,
    [key],
  )
  return rows[0].ms
}

/** Maps each function that queues a waiting job to a call that makes its job wait for 60 to 90 seconds. */
const QUEUED: Record<string, (pool: Pool) => Promise<unknown>> = {
  queueDocument: (pool) => queueDocument(pool, `ocd_${ID}`, WAIT_MS),
  queueSignIn: (pool) => queueSignIn(pool, `csi_${ID}`, WAIT_MS),
  queueSignInMail: (pool) => queueSignInMail(pool, `sim_${ID}`, WAIT_MS),
  queueAnnouncement: (pool) => queueAnnouncement(pool, `apr_${ID}`, WAIT_MS),
  queueSearchable: (pool) => queueSearchable(pool, `prj_${ID}`, '1'),
  parseAgainLater: (pool) =>
    parseAgainLater(pool, { id: '1', unsureSince: new Date(Date.now() - WAIT_MS) }),
}

describe.each([
  ['an hour ahead', HOUR_MS],
  ['an hour behind', -HOUR_MS],
])('the clock of the machine is %s', (_clock, aheadMs) => {
  test.each(Object.keys(QUEUED))('%s queues its job for the right moment', async (name) => {
    const { pool } = database
    await pool.query('delete from graphile_worker._private_jobs')
    setSystemTime(Date.now() + aheadMs)
    await QUEUED[name]!(pool)
    const { rows } = await pool.query(
      'select extract(epoch from run_at - clock_timestamp())::float8 * 1000 as ms from graphile_worker.jobs',
    )
    expect(rows[0].ms).toBeWithin(WAIT_MS / 2, WAIT_MS * 1.5)
  })

  test('a postponed mail is due at the right moment', async () => {
    const { pool } = database
    const sent = await newSent(pool)
    const mail = await begin(pool, sent)
    setSystemTime(Date.now() + aheadMs)
    const nextAttemptAt = new Date(Date.now() + WAIT_MS)
    const recipients = mail.due.map(
      ({ address }) => ({ address, state: 'postponed', error: null, nextAttemptAt }) as const,
    )
    expect(await recordSent(pool, mail, { recipients })).toBe(true)
    expect(await waitMs(`send_mail:${sent.row}`)).toBeWithin(WAIT_MS / 2, WAIT_MS * 1.5)
    const { rows } = await pool.query(
      `select extract(epoch from next_attempt_at - clock_timestamp())::float8 * 1000 as ms
       from outbound_recipients where message_row = $1`,
      [sent.row],
    )
    expect(rows[0].ms).toBeWithin(WAIT_MS / 2, WAIT_MS * 1.5)
  })

  test('a postponed payment is due at the right moment', async () => {
    const { pool } = database
    const paymentId = await newPayment(pool)
    setSystemTime(Date.now() + aheadMs)
    const runAt = new Date(Date.now() + WAIT_MS)
    await postponePayments(pool, [{ paymentId, trouble: 'silent', isContradicted: false, runAt }])
    expect(await waitMs(`settle_payment:${paymentId}`)).toBeWithin(WAIT_MS / 2, WAIT_MS * 1.5)
    const { rows } = await pool.query(
      `select extract(epoch from settle_after - clock_timestamp())::float8 * 1000 as ms from payments where id = $1`,
      [paymentId],
    )
    expect(rows[0].ms).toBeWithin(WAIT_MS / 2, WAIT_MS * 1.5)
  })

  test('a deferred sign-in mail is tried again within its lifetime', async () => {
    const { pool } = database
    await pool.query('delete from graphile_worker._private_jobs')
    const id = newSignInMailId()
    await pool.query(
      `insert into sign_in_mails (id, email, browser_hash, expires_at)
       values ($1, 'ada@people.example', '', clock_timestamp() + interval '15 minutes')`,
      [id],
    )
    setSystemTime(Date.now() + aheadMs)
    await recordSignInMail(pool, id, true)
    const { rows } = await pool.query(
      'select extract(epoch from run_at - clock_timestamp())::float8 as s from graphile_worker.jobs',
    )
    expect(rows[0]?.s).toBeWithin(15, 45)
  })
})
