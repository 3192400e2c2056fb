/** Tests that the large mails of one project do not fill the memory of the process that sends mail. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createSecretKey } from 'node:crypto'
import { MailMemory, type MemoryTurn } from '../../../../workers/mail/outbound/mailMemory.ts'
import { createSendMail } from '../../../../workers/mail/outbound/sendMail.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { newSent, recipientsOf } from '../../../support/mail/mailRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const MB = 1_000_000

test('each project gets at most half of the memory that other projects leave free, so that another project can still get memory', () => {
  const memory = new MailMemory(100 * MB)
  const granted: [string, MemoryTurn][] = []
  for (const project of ['a', 'a', 'a', 'a', 'b', 'b', 'b', 'c', 'c']) {
    const turn = memory.enter(project, 15 * MB)
    if (turn.granted) granted.push([project, turn])
  }
  // Each mail takes 15 MB. Project a gets memory for three mails (at most half of 100 MB), project b for one mail (at
  // most half of the other 55 MB), and project c for one mail.
  expect(granted.map(([project]) => project)).toEqual(['a', 'a', 'a', 'b', 'c'])
  const [[, first]] = granted as [[string, MemoryTurn]]
  if (first.granted) {
    first.leave()
    first.leave()
  }
  expect(memory.enter('d', 40 * MB).granted).toBe(true)
  expect(memory.enter('e', MB).granted).toBe(false)
})

test('a small mail always gets memory, and a mail above the limit gets memory if no other mail uses any', () => {
  const memory = new MailMemory(10 * MB)
  const turn = memory.enter('a', 50 * MB)
  expect(turn.granted).toBe(true)
  expect(memory.enter('b', MB).granted).toBe(false)
  expect(memory.enter('b', 256 * 1024).granted).toBe(true)
})

test('if mails of one project get no memory, they are retried one after another, and mails of other projects do not wait behind them', () => {
  const memory = new MailMemory(10 * MB)
  memory.enter('a', 10 * MB)
  const returns = Array.from({ length: 5 }, () => memory.enter('b', MB)).map((turn) =>
    turn.granted ? 0 : turn.returnInMs,
  )
  for (const [n, inMs] of returns.entries()) {
    expect(inMs).toBeWithin(900 + n * 150, 1_100 + n * 200)
  }
  const other = memory.enter('c', MB)
  expect(other.granted ? 0 : other.returnInMs).toBeWithin(900, 1_100)
})

test('while a large mail of a project is sent, its second large mail is postponed, and the mail of another project is sent', async () => {
  const sending: string[] = []
  const held = Promise.withResolvers<void>()
  const send = createSendMail(
    {
      ...{ pool, log: silentLog },
      lanes: { enter: async () => ({ granted: true, leave: () => {} }) },
      outcomes: { record: (work: () => Promise<unknown>) => work() },
    } as never,
    {
      ...{ mailDomain: 'mail.test', bounceKeys: [createSecretKey(Buffer.alloc(32))] },
      ...{ keyring: (async () => ({})) as never, blobs: noBlobs, memory: new MailMemory(MB) },
      transport: {
        route: 'relay',
        split: (to: string[]) => (to.length === 0 ? [] : [{ lane: 'relay', to }]),
        async send({ envelopes }: { envelopes: { to: string }[] }, report: any) {
          sending.push(envelopes[0]!.to)
          await held.promise
          await report(envelopes.map(({ to }) => ({ address: to, state: 'sent', error: null })))
        },
      } as never,
    },
  )
  const large = async (to: string, projectId?: string) => {
    const sent = await newSent(pool, { to: [to], ...(projectId && { projectId }) })
    await pool.query('update messages set stored_bytes = 300000 where row = $1', [sent.row])
    return sent
  }
  const first = await large('first@example.com')
  const second = await large('second@example.com', first.projectId)
  const other = await large('other@example.com')
  const run = (row: string) => send({ messageRow: row }, { attempt: 1 })
  const firstRun = run(first.row)
  await waitFor('the first mail', () => sending.length === 1)
  await run(second.row)
  const otherRun = run(other.row)
  await waitFor('the mail of the other project', () => sending.length === 2)
  expect(sending).toEqual(['first@example.com', 'other@example.com'])
  const { rows } = await pool.query(
    `select state, attempts, next_attempt_at > clock_timestamp() as is_later from outbound_recipients
     where message_row = $1`,
    [second.row],
  )
  expect(rows).toEqual([{ state: 'queued', attempts: 0, is_later: true }])
  held.resolve()
  await Promise.all([firstRun, otherRun])
  await pool.query('update outbound_mails set next_attempt_at = now() where message_row = $1', [
    second.row,
  ])
  await pool.query(
    'update outbound_recipients set next_attempt_at = now() where message_row = $1',
    [second.row],
  )
  await run(second.row)
  expect((await recipientsOf(pool, second)).map(({ state }: any) => state)).toEqual(['sent'])
})
