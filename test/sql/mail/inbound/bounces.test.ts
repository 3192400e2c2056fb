/** Tests that a bounce counts only for messages of its own project, and only for the recipients of the message. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseAddress } from '../../../../shared/mail/address.ts'
import {
  type BounceKeys,
  bounceAddress,
  bounceKeys,
} from '../../../../shared/mail/compose/bounceAddress.ts'
import type { Bounce } from '../../../../shared/mail/parse/dsn.ts'
import { masterKey } from '../../../../shared/vault/envelope.ts'
import { transaction } from '../../../../sql/db.ts'
import { findReturnedCopy, recordBounce } from '../../../../sql/mail/inbound/bounces.ts'
import {
  deleteSuppression,
  listSuppressions,
  suppress,
} from '../../../../sql/mail/outbound/suppressions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  begin,
  newSent,
  receive,
  recipientsOf,
  recordSent,
} from '../../../support/mail/mailRows.ts'
import { newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const bounceOf = (
  messageIds: string[],
  more: object = {},
  changes: Partial<Bounce> = {},
): Bounce => ({
  isReport: true,
  messageIds,
  recipients: [
    {
      addresses: ['ada@example.com'],
      action: 'failed',
      status: '5.1.1',
      diagnostic: 'no',
      ...more,
    },
  ],
  proof: null,
  ...changes,
})
const proven = (messageId: string, address = 'ada@example.com') => ({
  proof: { messageId, address },
})
const record = (projectId: string, bounce: Bounce) =>
  transaction(pool, (db) => recordBounce(db, projectId, bounce))
const handedOver = async (changes: Parameters<typeof newSent>[1] = {}) => {
  const sent = await newSent(pool, changes)
  await recordSent(pool, await begin(pool, sent))
  return sent
}
const statesOf = async (sent: { row: string }) =>
  (await recipientsOf(pool, sent)).map(({ state }) => state)
const suppressedOf = async (projectId: string) =>
  (await listSuppressions(pool, projectId, { limit: 10, cursor: null })).map(
    ({ address }) => address,
  )

test('a bounce changes only the state of the message and recipient that it names', async () => {
  const sent = await handedOver({ to: ['ada@example.com', 'bob@example.com'] })
  const other = await handedOver({ projectId: sent.projectId })
  const bounce = bounceOf([sent.messageId], {}, proven(sent.messageId))
  const [event] = await record(sent.projectId, bounce)
  expect(event?.type).toBe('message.bounced')
  expect(await statesOf(sent)).toEqual(['bounced', 'sent'])
  expect(await statesOf(other)).toEqual(['sent'])
  expect(await suppressedOf(sent.projectId)).toEqual(['ada@example.com'])
  for (const again of [bounce, bounceOf([sent.messageId])]) {
    expect(await record(sent.projectId, again)).toEqual([])
  }
})

test('a bounce without proof of its origin marks the recipient as bounced without suppressing the address; a bounce with proof affects only its own recipient', async () => {
  const to = ['ada@example.com', 'bob@example.com']
  const sent = await handedOver({ to })
  await record(sent.projectId, bounceOf([sent.messageId]))
  expect(await suppressedOf(sent.projectId)).toEqual([])
  const about = { addresses: ['ada@example.com'] }
  await record(sent.projectId, bounceOf([], about, proven(sent.messageId, 'bob@example.com')))
  expect(await suppressedOf(sent.projectId)).toEqual([])
  expect(await recipientsOf(pool, sent)).toMatchObject([
    { state: 'bounced', error: 'unproven report: no' },
    { state: 'bounced', error: 'no' },
  ])
  expect(await record(sent.projectId, bounceOf([], {}, proven(sent.messageId)))).toEqual([])
  expect(await suppressedOf(sent.projectId)).toEqual(['ada@example.com'])
})

test('a message that bounced at two recipients gets the label for a bounce only once', async () => {
  const sent = await handedOver({ to: ['ada@example.com', 'bob@example.com'] })
  for (const address of ['ada@example.com', 'bob@example.com']) {
    await record(sent.projectId, bounceOf([sent.messageId], { addresses: [address] }))
  }
  const { rows } = await pool.query('select labels from messages where row = $1', [sent.row])
  expect(rows).toEqual([{ labels: ['sent', 'bounced'] }])
})

test('a bounce is ignored if its message belongs to another project, was received, or lacks this recipient', async () => {
  const sent = await handedOver()
  const stranger = await newProject(pool)
  const { messageId } = await receive(pool, sent.projectId)
  const cases: [string, Bounce][] = [
    [stranger, bounceOf([sent.messageId])],
    [sent.projectId, bounceOf([messageId])],
    [sent.projectId, bounceOf(['<unknown@mail.test>'])],
    [sent.projectId, bounceOf([sent.messageId], { action: 'delayed' })],
    [
      sent.projectId,
      bounceOf([sent.messageId], { addresses: ['x@y.example'] }, { isReport: false }),
    ],
  ]
  for (const [projectId, bounce] of cases) expect(await record(projectId, bounce)).toEqual([])
  expect(await statesOf(sent)).toEqual(['sent'])
  expect([await suppressedOf(sent.projectId), await suppressedOf(stranger)]).toEqual([[], []])
})

test('if a bounce contains several Message-IDs, the first known Message-ID identifies the bounced message', async () => {
  const [sure, guess] = [await handedOver(), await newSent(pool)]
  const other = await handedOver({ projectId: sure.projectId })
  await record(sure.projectId, bounceOf([guess.messageId, other.messageId, sure.messageId]))
  expect([await statesOf(other), await statesOf(sure)]).toEqual([['bounced'], ['sent']])
})

test.each(['queued', 'deferred'])(
  'an unproven bounce about a %s recipient is ignored if another recipient could have forged it',
  async (state) => {
    const sent = await handedOver({ to: ['ada@example.com', 'bob@example.com'] })
    await pool.query(
      `update outbound_recipients set state = $2 where message_row = $1 and address = 'ada@example.com'`,
      [sent.row, state],
    )
    expect(await record(sent.projectId, bounceOf([sent.messageId]))).toEqual([])
    expect(await statesOf(sent)).toEqual([state, 'sent'])
    await record(sent.projectId, bounceOf([], {}, proven(sent.messageId)))
    expect(await statesOf(sent)).toEqual(['bounced', 'sent'])
  },
)

test('a recipient whose mail host refused the mail cannot bounce later', async () => {
  const sent = await newSent(pool)
  await pool.query(`update outbound_recipients set state = 'failed' where message_row = $1`, [
    sent.row,
  ])
  for (const proof of [{}, proven(sent.messageId), proven(sent.messageId, 'eve@example.com')]) {
    expect(await record(sent.projectId, bounceOf([sent.messageId], {}, proof))).toEqual([])
    expect(await statesOf(sent)).toEqual(['failed'])
  }
  expect(await suppressedOf(sent.projectId)).toEqual([])
})

test('if a bounce has no diagnostic text, its status code is used as the description', async () => {
  for (const [status, error] of [
    ['5.1.1', 'returned (5.1.1)'],
    [null, 'returned'],
  ] as const) {
    const sent = await handedOver()
    const bounce = bounceOf([], { status, diagnostic: '' }, proven(sent.messageId))
    await record(sent.projectId, bounce)
    expect(await recipientsOf(pool, sent)).toMatchObject([{ state: 'bounced', error }])
  }
})

test('a bounce about an unknown address marks the only recipient of the message as bounced, but does not suppress the address', async () => {
  const [one, two] = [await handedOver(), await handedOver({ to: ['a@b.example', 'c@d.example'] })]
  const forwarded = { addresses: ['hidden@example.com'] }
  await record(one.projectId, bounceOf([one.messageId], forwarded))
  await record(two.projectId, bounceOf([two.messageId], forwarded))
  expect([await statesOf(one), await statesOf(two)]).toEqual([['bounced'], ['sent', 'sent']])
  expect(await suppressedOf(one.projectId)).toEqual([])
})

test('a bounce report about an unknown address is ignored if the message had a second recipient', async () => {
  const sent = await handedOver({ to: ['a@b.example', 'c@d.example'] })
  await pool.query(
    `update outbound_recipients set state = 'failed' where message_row = $1 and address = 'a@b.example'`,
    [sent.row],
  )
  await record(sent.projectId, bounceOf([sent.messageId], { addresses: ['hidden@example.com'] }))
  expect(await statesOf(sent)).toEqual(['failed', 'sent'])
})

test('a bounce that arrives while a sending attempt is recorded waits until the record is finished', async () => {
  const sent = await newSent(pool)
  const hold = `with locked as (select message_row from outbound_mails where message_row = $1 for update)
                update outbound_recipients r set state = 'failed' from locked l where r.message_row = l.message_row`
  const [events] = await whileHeld(pool, hold, [sent.row], () => [
    record(sent.projectId, bounceOf([sent.messageId])),
  ])
  expect(events).toEqual([])
  expect(await statesOf(sent)).toEqual(['failed'])
})

const KEYS = [masterKey('a', Buffer.alloc(32, 1)), masterKey('b', Buffer.alloc(32, 2))]
const [current, old] = [bounceKeys(KEYS), bounceKeys(KEYS.slice(1))]

test('the service finds a sent copy only by the bounce address of this copy, signed with the current or the old key', async () => {
  const sent = await newSent(pool, { to: ['Ada@example.com', 'bob@example.com'] })
  const { projectId, messageId } = sent
  const addressOf = (keys: BounceKeys, recipient: string, of = projectId) =>
    bounceAddress(keys, 'agent@mail.test', { projectId: of, messageId, recipient })
  const found = (envelopeTo: string, of = projectId, keys = current) =>
    findReturnedCopy(pool, keys, { projectId: of, envelopeTo })
  const copy = { messageId, address: 'Ada@example.com' }
  for (const keys of [current, old]) {
    expect(await found(addressOf(keys, 'ada@EXAMPLE.com'))).toMatchObject(copy)
  }
  const address = addressOf(current, 'Ada@example.com')
  expect(await found(address, projectId, old)).toBeNull()
  const stranger = await newProject(pool)
  const forged = address.replace(/.(?=@)/, (last) => (last === 'a' ? 'b' : 'a'))
  for (const [envelopeTo, of] of [
    ['agent@mail.test', projectId],
    [addressOf(current, 'carl@example.com'), projectId],
    [addressOf(current, 'Ada@example.com', stranger), projectId],
    [address, stranger],
    [forged, projectId],
  ] as const) {
    expect([envelopeTo, await found(envelopeTo, of)]).toEqual([envelopeTo, null])
  }
})

test('if an inbox name is too long for a bounce tag, mail from this inbox has the inbox’s own address as envelope sender', () => {
  const copy = { projectId: 'p', messageId: '<m@x>', recipient: 'ada@example.com' }
  for (const [length, tagged] of [
    [38, true],
    [39, false],
  ] as const) {
    const from = `${'n'.repeat(length)}@mail.test`
    const address = bounceAddress(current, from, copy)
    expect([address !== from, parseAddress(address)]).toEqual([tagged, address])
  }
})

test('suppressed addresses belong to one project, exist only once, and are listed in pages', async () => {
  const [one, two] = [await newSent(pool), await newSent(pool)]
  const found = (address: string, detail: string | null = null) =>
    ({ address, reason: 'bounce', detail }) as const
  const of = ({ projectId, row }: { projectId: string; row: string }) => ({
    projectId,
    messageRow: row,
  })
  await suppress(pool, of(one), [found('A@x.example', 'first'), found('a@x.example', 'first')])
  await suppress(pool, of(one), [found('a@x.example', 'second')])
  await suppress(pool, of(one), [found('b@x.example')])
  await suppress(pool, of(two), [found('a@x.example')])
  const [newest] = await listSuppressions(pool, one.projectId, { limit: 1, cursor: null })
  expect(newest?.address).toBe('b@x.example')
  const cursor = { atMs: newest!.createdAt.getTime(), row: newest!.row }
  const rest = await listSuppressions(pool, one.projectId, { limit: 10, cursor })
  expect(rest.map(({ address, detail }) => [address, detail])).toEqual([['a@x.example', 'first']])
  expect(await deleteSuppression(pool, one.projectId, 'A@x.example')).toBe(true)
  expect(await deleteSuppression(pool, one.projectId, 'a@x.example')).toBe(false)
  expect(await suppressedOf(two.projectId)).toEqual(['a@x.example'])
})
