/** Tests to which copy of a sent message the report of a mail relay belongs, and how often the report counts. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { bounceAddress, bounceKeys } from '../../../../shared/mail/compose/bounceAddress.ts'
import type { RelayReport } from '../../../../shared/mail/http/relayReport.ts'
import { masterKey } from '../../../../shared/vault/envelope.ts'
import { transaction } from '../../../../sql/db.ts'
import { recordBounce } from '../../../../sql/mail/inbound/bounces.ts'
import { recordRelayReport } from '../../../../sql/mail/inbound/relayReports.ts'
import { listSuppressions } from '../../../../sql/mail/outbound/suppressions.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  addressOf,
  begin,
  eventsOf,
  newSent,
  recipientsOf,
  recordSent,
} from '../../../support/mail/mailRows.ts'

const TO = ['Ada@example.com', 'bob@example.com']
const KEYS = bounceKeys([masterKey('a', Buffer.alloc(32, 1))])

let database: TestDatabase
let pool: TestDatabase['pool']
let relayIds = 0
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

/** Stores a sent message whose copies a mail relay accepted, and the relay's id for the first copy. */
async function handedOver(projectId?: string) {
  const sent = await newSent(pool, { to: TO, ...(projectId === undefined ? {} : { projectId }) })
  const relayId = `relay-id-${++relayIds}`
  const attempt = await begin(pool, sent)
  await recordSent(pool, attempt, {
    recipients: TO.map((address, n) => ({
      ...{ address, state: 'sent' as const, error: null, nextAttemptAt: null },
      relayId: n === 0 ? relayId : `${relayId}-other`,
    })),
  })
  return { ...sent, relayId, inbox: await addressOf(pool, sent.projectId) }
}
type Sent = Awaited<ReturnType<typeof handedOver>>

const NO_CLUES = { from: '', relayIds: [], messageIds: [], returnPaths: [] }
const report = (changes: Partial<RelayReport>, domain: string | null = null) =>
  recordRelayReport(
    pool,
    {
      ...{ kind: 'bounce', address: 'ada@EXAMPLE.com', status: '5.1.1', detail: 'no such user' },
      ...NO_CLUES,
      ...changes,
    },
    domain,
  )
const statesOf = async (sent: Sent) => (await recipientsOf(pool, sent)).map(({ state }) => state)
const suppressedOf = async ({ projectId }: Sent) =>
  (await listSuppressions(pool, projectId, { limit: 10, cursor: null })).map(
    ({ address, reason }) => [address, reason],
  )
const verp = ({ inbox, projectId, messageId }: Sent, recipient = TO[0]!) =>
  bounceAddress(KEYS, inbox, { projectId, messageId, recipient })

describe('a relay’s report is recorded only for the sent copy that it names', () => {
  test.each<[name: string, clues: (sent: Sent) => Partial<RelayReport>]>([
    ['the id of the relay', ({ relayId }) => ({ relayIds: ['unknown-1', relayId] })],
    [
      'the inbox and the Message-ID',
      ({ inbox, messageId }) => ({
        from: inbox.toUpperCase(),
        messageIds: ['<x@y.example>', messageId],
      }),
    ],
    ['the envelope sender', (sent) => ({ returnPaths: ['a@b.example', verp(sent)] })],
  ])('the report of a mail relay is matched to the sent copy by %s', async (_, clues) => {
    const sent = await handedOver()
    const other = await handedOver(sent.projectId)
    expect(await report(clues(sent))).toBe(true)
    expect([await statesOf(sent), await statesOf(other)]).toEqual([
      ['bounced', 'sent'],
      ['sent', 'sent'],
    ])
    expect(await suppressedOf(sent)).toEqual([['ada@example.com', 'bounce']])
    expect(await eventsOf(pool, sent.projectId)).toContain('message.bounced')
    expect(await report(clues(sent))).toBe(false)
  })

  test('a relay’s report is ignored if its address got no copy, or if another inbox sent the message', async () => {
    const [sent, stranger] = [await handedOver(), await handedOver()]
    const { messageId, relayId, inbox } = sent
    const cases: Partial<RelayReport>[] = [
      {},
      { relayIds: ['unknown-1'] },
      { relayIds: [`${relayId}-other`] },
      { relayIds: [relayId], address: 'eve@example.com' },
      { from: stranger.inbox, messageIds: [messageId] },
      { from: inbox, messageIds: ['<x@y.example>'] },
      { from: inbox, messageIds: [messageId], address: 'eve@example.com' },
      { returnPaths: [inbox] },
      { returnPaths: [verp(sent).replace(inbox.split('@')[0]!, stranger.inbox.split('@')[0]!)] },
      { returnPaths: [verp(sent)], address: 'eve@example.com' },
    ]
    for (const clues of cases) expect([clues, await report(clues)]).toEqual([clues, false])
    expect([await statesOf(sent), await statesOf(stranger)]).toEqual([
      ['sent', 'sent'],
      ['sent', 'sent'],
    ])
  })

  test('a reporter for one domain can report only about mail from inboxes of this domain', async () => {
    const { relayId } = await handedOver()
    const clues = { relayIds: [relayId] }
    expect(await report(clues, 'other.test')).toBe(false)
    expect(await report(clues, 'mail.test')).toBe(true)
  })
})

test('a complaint that a relay reports is recorded once for its sent copy, and does not mark the copy as bounced', async () => {
  const sent = await handedOver()
  const clues: Partial<RelayReport> = { kind: 'complaint', relayIds: [sent.relayId] }
  expect([await report(clues), await report(clues)]).toEqual([true, false])
  expect(await statesOf(sent)).toEqual(['sent', 'sent'])
  expect(await suppressedOf(sent)).toEqual([['ada@example.com', 'complaint']])
  const other = { ...clues, relayIds: [`${sent.relayId}-other`], address: 'bob@example.com' }
  expect(await report(other)).toBe(true)
  const { rows } = await pool.query('select labels from messages where row = $1', [sent.row])
  expect(rows).toEqual([{ labels: ['sent', 'complained'] }])
  const complained = (await eventsOf(pool, sent.projectId)).filter(
    (type) => type === 'message.complained',
  )
  expect(complained.length).toBe(2)
})

test('a bounce without proof of its origin does not suppress an address, but a relay’s later report with proof does', async () => {
  const sent = await handedOver()
  const unproven = { action: 'failed', status: '5.1.1', diagnostic: 'no' } as const
  await transaction(pool, (db) =>
    recordBounce(db, sent.projectId, {
      isReport: true,
      messageIds: [sent.messageId],
      recipients: [{ ...unproven, addresses: [TO[0]!] }],
      proof: null,
    }),
  )
  expect(await suppressedOf(sent)).toEqual([])
  await report({ relayIds: [sent.relayId] })
  expect(await suppressedOf(sent)).toEqual([['ada@example.com', 'bounce']])
  expect(await recipientsOf(pool, sent)).toMatchObject([{ error: 'no such user' }, {}])
})
