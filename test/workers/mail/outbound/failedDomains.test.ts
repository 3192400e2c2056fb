/** Tests mail to a mail domain of this service that has failed, while its name servers delay their answers. */
import { expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { createSendMail } from '../../../../workers/mail/outbound/sendMail.ts'
import { Lanes, MAIL_LIMITS } from '../../../../workers/queue/lanes.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newSent, recipientsOf } from '../../../support/mail/mailRows.ts'
import { newKeyring } from '../../../support/purse/purseRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

test('while the name servers of a failed domain are silent, mail to the domain uses only two job slots, and the next mail waits without a slot', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  await pool.query(
    `insert into mail_domains (domain, token, dkim_selector, dkim_record, status, verified_at)
     values ('lame.test', 't', 's', 'r', 'failed', now())`,
  )
  const answered = Promise.withResolvers<boolean>()
  let asked = 0
  const sent: string[] = []
  const lanes = new Lanes(32, MAIL_LIMITS)
  const keyring = await newKeyring(pool)
  const send = createSendMail(
    {
      ...{ pool, log: silentLog, lanes },
      outcomes: { record: (work: () => Promise<unknown>) => work() },
    } as never,
    {
      ...{ mailDomain: 'mail.test', bounceKeys: [createSecretKey(Buffer.alloc(32))] },
      ...{ blobs: noBlobs, keyring: async () => keyring },
      transport: {
        route: 'direct',
        split: (to: string[]) => (to.length === 0 ? [] : [{ lane: 'lame.test', to }]),
        async leadsHere() {
          asked++
          return await answered.promise
        },
        async send({ envelopes }: any, report: any) {
          for (const { to } of envelopes) {
            sent.push(to)
            await report([{ address: to, state: 'sent', error: null }])
          }
        },
      } as never,
    },
  )
  const mails = await Promise.all(
    ['a', 'b', 'c'].map((name) => newSent(pool, { to: [`${name}@lame.test`] })),
  )
  const [first, second, third] = mails.map(({ row }) => row)
  const runs = [first, second].map((messageRow) =>
    send({ messageRow: messageRow! }, { attempt: 1 }),
  )
  await waitFor('two look-ups', () => asked === 2)
  await send({ messageRow: third! }, { attempt: 1 })
  expect([asked, (await recipientsOf(pool, mails[2]!))[0]]).toMatchObject([
    2,
    { state: 'queued', attempts: 0 },
  ])
  const { rowCount } = await pool.query('select from graphile_worker.jobs where key = $1', [
    `send_mail:${third}`,
  ])
  expect(rowCount).toBe(1)
  answered.resolve(false)
  await Promise.all(runs)
  expect(sent.toSorted()).toEqual(['a@lame.test', 'b@lame.test'])
})
