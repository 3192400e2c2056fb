/** Tests that a run of a mail's job sends no more copies after another run of the same job has begun. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { createSendMail } from '../../../../workers/mail/outbound/sendMail.ts'
import type { OutgoingMail, Report } from '../../../../workers/mail/outbound/transport.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newSent, recipientsOf } from '../../../support/mail/mailRows.ts'
import { newKeyring } from '../../../support/purse/purseRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let keyring: Awaited<ReturnType<typeof newKeyring>>
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  keyring = await newKeyring(pool)
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Makes a transport that reports each copy of a mail before it sends the next copy. @param before runs before each
 * report.
 */
const transportOf = (sent: string[], before: (to: string) => Promise<unknown>) => ({
  route: 'direct',
  split: (to: string[]) => (to.length === 0 ? [] : [{ lane: 'example.com', to }]),
  async send({ envelopes }: OutgoingMail, report: Report) {
    for (const { to } of envelopes) {
      sent.push(to)
      await before(to)
      await report([{ address: to, state: 'sent', error: null }])
    }
  },
})

test.each<[string, string]>([
  ['another run of its job has begun', 'update outbound_mails set attempt = attempt + 1'],
  ['the mail is deleted', 'delete from messages'],
])('a run of the sending job sends no more copies after %s', async (_event, change) => {
  const to = ['a@example.com', 'b@example.com', 'c@example.com']
  const mail = await newSent(pool, { to })
  const sent: string[] = []
  const column = change.startsWith('update') ? 'message_row' : 'row'
  const send = createSendMail(
    {
      ...{ pool, log: silentLog },
      lanes: { enter: async () => ({ granted: true, leave: () => {} }) },
      outcomes: { record: (work: () => Promise<unknown>) => work() },
    } as never,
    {
      ...{
        mailDomain: 'mail.test',
        bounceKeys: [createSecretKey(Buffer.alloc(32))],
        blobs: noBlobs,
        keyring: async () => keyring,
      },
      transport: transportOf(sent, async (address) => {
        if (address === to[0]) await pool.query(`${change} where ${column} = $1`, [mail.row])
      }) as never,
    },
  )
  await send({ messageRow: mail.row }, { attempt: 1 })
  expect(sent).toEqual(['a@example.com'])
  const states = (await recipientsOf(pool, mail)).map(({ state }) => state)
  expect(states).toEqual(change.startsWith('update') ? ['sent', 'queued', 'queued'] : [])
})
