/** Tests that slow name servers delay only the mail of the stranger who chose these name servers. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { insertInboundMails, type SpooledMail } from '../../../../sql/mail/inbound/inboundMails.ts'
import { createParseInbound } from '../../../../workers/mail/inbound/parseInbound.ts'
import type { LookUp } from '../../../../workers/mail/lookUp.ts'
import { createHeldOutcomes } from '../../../../workers/queue/heldOutcomes.ts'
import { Lanes } from '../../../../workers/queue/lanes.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { trustingLookUp } from '../../../support/mail/fakeLookUp.ts'
import { addressOf, rawMail, spooled } from '../../../support/mail/mailRows.ts'
import { dropJobs, newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())
beforeEach(async () => {
  await pool.query('delete from messages')
  await pool.query('delete from inbound_mails')
})

/** Makes a DNS lookup whose answers for names below `silent.test` arrive only when `answer` is called. */
function slowLookUp() {
  const asked: string[] = []
  const { promise, resolve: answer } = Promise.withResolvers<void>()
  const lookUp: LookUp = async (name, type) => {
    if (name.endsWith('silent.test')) {
      asked.push(name)
      await promise
    }
    return await trustingLookUp(name, type)
  }
  return { asked, answer, lookUp }
}

const tasksOf = (lookUp: LookUp) =>
  createParseInbound(
    { pool, log: silentLog, lanes: new Lanes(1), outcomes: createHeldOutcomes(silentLog) },
    { mailDomain: 'mail.test', lookUp, blobs: noBlobs, bounceKeys: [], slots: 200 },
  )

let senders = 0

type Arrival = { subject: string; text?: string; changes?: Partial<SpooledMail> }

/** Stores an inbound mail of a project. @returns the id of the inbound mail. */
async function arrive(projectId: string, { subject, text = 'x', changes }: Arrival) {
  const mail = spooled([await addressOf(pool, projectId)], rawMail({ subject, text }), changes)
  await insertInboundMails(pool, [mail])
  const { rows } = await pool.query<{ id: string }>(
    `select i.id from inbound_mails i join raw_mails r on r.id = i.raw_id where r.source_key = $1`,
    [mail.sourceKey],
  )
  return rows[0]!.id
}

/** Stores an inbound mail whose sender has a separate name server that is silent. */
const arriveSilent = (projectId: string, { changes, ...mail }: Partial<Arrival> = {}) =>
  arrive(projectId, {
    ...{ subject: 'silent', ...mail },
    changes: { envelopeFrom: `a@s${++senders}.silent.test`, ...changes },
  })

const subjects = async () => {
  const { rows } = await pool.query('select subject from messages order by row')
  return rows.map(({ subject }) => subject)
}

const LARGE = 'word '.repeat(60_000)
const POSTMARK: Partial<SpooledMail> = {
  remoteIp: '192.0.2.7',
  provider: { name: 'postmark', spf: 'pass' },
}

test.each<[string, Partial<SpooledMail>, string]>([
  ['a mail service delivers from one address', POSTMARK, 'x'],
  ['comes from the same mail host', { remoteIp: '192.0.2.9' }, 'x'],
  ['is large', { remoteIp: '192.0.2.9' }, LARGE],
])(
  'a stranger with silent name servers does not delay mail to another inbox that %s',
  async (_name, changes, text) => {
    const { asked, answer, lookUp } = slowLookUp()
    const { parse_inbound } = tasksOf(lookUp)
    const [attacked, other] = [await newProject(pool), await newProject(pool)]
    const more = { changes, text }
    const ids: string[] = []
    for (let n = 0; n < 12; n++) ids.push(await arriveSilent(attacked, more))
    const waiting = ids.map((inboundId) => parse_inbound({ inboundId }, { attempt: 1 }))
    await waitFor('the name servers to be asked', () => asked.length >= 8)
    const inboundId = await arrive(other, { subject: 'good', ...more })
    await parse_inbound({ inboundId }, { attempt: 1 })
    expect(await subjects()).toEqual(['good'])
    answer()
    await Promise.all(waiting)

    expect((await subjects()).length).toBe(13)
  },
)

test('a large mail is stored with the verdicts about its sender, although the sender’s name servers answer late', async () => {
  const { asked, answer, lookUp } = slowLookUp()
  const { parse_inbound } = tasksOf(lookUp)
  const projectId = await newProject(pool)
  const inboundId = await arriveSilent(projectId, {
    text: LARGE,
    changes: { remoteIp: '127.0.0.1', envelopeFrom: 'ada@late.silent.test' },
  })
  const parsing = parse_inbound({ inboundId }, { attempt: 1 })
  // The service sends the second DNS query only after the mail has left the parser.
  await waitFor('the second question', () => asked.length === 2)
  expect(await subjects()).toEqual([])
  answer()
  await parsing
  const { rows } = await pool.query('select authentication from messages')
  expect(rows[0].authentication).toMatchObject({ spf: 'pass' })
})

test('a large mail whose DNS answers have arrived does not wait for another mail of its sender', async () => {
  const { asked, answer, lookUp } = slowLookUp()
  const stillSilent = slowLookUp()
  const { parse_inbound } = tasksOf((name, type) =>
    name.endsWith('still.silent.test') ? stillSilent.lookUp(name, type) : lookUp(name, type),
  )
  const projectId = await newProject(pool)
  const large = await arriveSilent(projectId, { subject: 'large', text: LARGE })
  const first = parse_inbound({ inboundId: large }, { attempt: 1 })
  await waitFor('the second question', () => asked.length === 2)
  const ids: string[] = []
  for (let n = 0; n < 12; n++) {
    const changes = { envelopeFrom: `a@s${n}.still.silent.test` }
    ids.push(await arrive(projectId, { subject: 'small', changes }))
  }
  const waiting = ids.map((inboundId) => parse_inbound({ inboundId }, { attempt: 1 }))
  await waitFor('the places to be taken', () => stillSilent.asked.length >= 7)
  answer()
  await first
  expect(await subjects()).toEqual(['large'])
  stillSilent.answer()
  await Promise.all(waiting)
})

test('mail whose sender has slow name servers does not delay mail to the same inbox from this service or from another network', async () => {
  const { asked, answer, lookUp } = slowLookUp()
  const { parse_inbound } = tasksOf(lookUp)
  const projectId = await newProject(pool)
  const ids: string[] = []
  for (let n = 0; n < 12; n++) {
    ids.push(await arriveSilent(projectId, { changes: { remoteIp: '192.0.2.9' } }))
  }
  const waiting = ids.map((inboundId) => parse_inbound({ inboundId }, { attempt: 1 }))
  await waitFor('the places to be taken', () => asked.length >= 8)
  for (const remoteIp of [null, '198.51.100.7']) {
    const changes = { remoteIp } as Partial<SpooledMail>
    const inboundId = await arrive(projectId, { subject: 'good', changes })
    await parse_inbound({ inboundId }, { attempt: 1 })
  }
  expect(await subjects()).toEqual(['good', 'good'])
  answer()
  await Promise.all(waiting)
})

test('when a mail leaves its parser batch because of a silent name server, no more DNS queries are sent for the check of its sender', async () => {
  const { asked, answer, lookUp } = slowLookUp()
  const { parse_batch, parse_inbound } = tasksOf(lookUp)
  const projectId = await newProject(pool)
  const inboundIds: string[] = []
  for (let n = 0; n < 9; n++) inboundIds.push(await arriveSilent(projectId))
  await dropJobs(pool)
  await parse_batch({ inboundIds }, { attempt: 1 })
  const before = asked.length
  answer()
  // If a check of another sender still waited for its turn, this mail would have to wait behind that check.
  const inboundId = await arrive(projectId, { subject: 'good' })
  await parse_inbound({ inboundId }, { attempt: 1 })
  expect(asked.length).toBe(before)
  const { rows } = await pool.query<{ key: string }>(
    `select key from graphile_worker._private_jobs where key = any ($1)`,
    [inboundIds.map((id) => `parse_inbound:${id}`)],
  )
  expect(rows).toHaveLength(9)
})
