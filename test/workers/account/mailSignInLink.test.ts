import { expect, test } from 'bun:test'
import { addPerson } from '../../../sql/account/people/people.ts'
import { askSignInMail } from '../../../sql/account/people/signInMails.ts'
import { createMailSignInLink } from '../../../workers/account/mailSignInLink.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { dropJobs } from '../../support/till/tillRows.ts'

test('while the mail host of a person hangs, a sign-in link waits in the queue and is not mailed', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const email = 'ada@people.example'
  const person = { email, name: 'Ada', role: 'operator', projectIds: [] } as const
  await addPerson(pool, { ...person, projectIds: [] }, async () => {})
  await askSignInMail(pool, { email, browser: 'browser', isKnown: true })
  await dropJobs(pool)
  const mails: unknown[] = []
  const transport = { split: () => [{ lane: 'relay', to: [email] }], send: mails.push } as never
  const outcomes = { record: (work: () => unknown) => work() }
  const lanes = { enter: async () => ({ granted: false, returnInMs: 60_000 }) }
  const mail = createMailSignInLink({ pool, outcomes, lanes } as never, {
    ...{ mailDomain: 'mail.test', baseUrl: 'https://purser.example', transport },
    ...{ keyring: null as never, signInTokens: (id: string) => id },
  })
  const { rows } = await pool.query('select id from sign_in_mails')
  await mail({ requestId: rows[0].id }, { attempt: 1 })
  const after = await pool.query(
    `select (select count(*)::int from console_links) as links, done_at,
       (select extract(epoch from run_at - clock_timestamp())::int from graphile_worker.jobs) as in_s
     from sign_in_mails`,
  )
  expect(after.rows).toEqual([{ links: 0, done_at: null, in_s: expect.any(Number) }])
  expect(after.rows[0].in_s).toBeWithin(50, 61)
  expect(mails).toEqual([])
})
