/**
 * Tests which message a waiting agent gets: the first message after the start of the wait that matches every filter.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseSearch } from '../../../../shared/mail/search/searchQuery.ts'
import { type Awaited, findFirstReceived } from '../../../../sql/mail/search/findFirstReceived.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { messageOf, newSent, rawMail, receive } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const START = Date.now() - 3_600_000
const at = (second: number) => new Date(START + second * 1_000)

type Kind = Exclude<Awaited, null>
type Given = {
  second: number
  subject?: string
  labels?: string[]
  /** Lists the types of content that the stored message has, such as a one-time code. */
  has?: readonly Kind[]
  isSent?: boolean
}

/**
 * Stores a message whose time is the given number of seconds after the start.
 * @returns the Message-ID of the message.
 */
async function store(projectId: string, given: Given): Promise<string> {
  const { second, subject = 'Order', labels = [], has = [], isSent = false } = given
  const { messageId } = isSent
    ? await newSent(pool, { projectId, subject })
    : await receive(pool, projectId, rawMail({ subject }))
  const { row } = (await messageOf(pool, projectId, messageId))!
  await pool.query(
    `update messages set created_at = $2, labels = $3, codes = $4, invites = $5 where row = $1`,
    [
      row,
      at(second),
      labels,
      JSON.stringify(has.includes('code') ? [{ value: '1234' }] : []),
      has.includes('invite') ? '[{}]' : null,
    ],
  )
  await pool.query(
    `insert into attachment_texts (message_row, attachment_id, project_id, state) values ($1, 'att_1', $2, $3)`,
    [row, projectId, has.includes('text') ? 'ready' : 'pending'],
  )
  return messageId
}

/** Stores mail in an inbox, and returns a function that finds the first message that arrived later than second 10. */
async function inbox(given: readonly Given[]) {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const everything = { labels: ['paid', 'new'], has: ['code', 'text', 'invite'] } as const
  await store(other, { second: 11, ...everything, labels: [...everything.labels] })
  const ids: string[] = []
  for (const one of given) ids.push(await store(projectId, one))
  return async (filter: { typed?: string; labels?: string[]; has?: Awaited } = {}) => {
    const { typed, labels = [], has = null } = filter
    const queries = typed === undefined ? [] : [parseSearch(typed)]
    const found = await findFirstReceived(pool, { projectId, queries, labels, after: at(10), has })
    return found === null ? null : ids.indexOf(found.messageId)
  }
}

test.each(['code', 'text', 'invite'] as const)(
  'an agent that waits for a mail with a %s gets the first later message of its inbox that has one',
  async (kind) => {
    const others = (['code', 'text', 'invite'] as const).filter((one) => one !== kind)
    const first = await inbox([
      { second: 10, has: [kind] },
      { second: 11, has: others },
      { second: 12, has: [kind], isSent: true },
      { second: 15, has: [kind], labels: ['paid', 'new'], subject: 'Invoice' },
      { second: 13, has: [kind] },
      { second: 14, has: [kind], labels: ['paid'] },
    ])
    expect([
      await first({ has: kind }),
      await first({ has: kind, labels: ['paid'] }),
      await first({ has: kind, labels: ['paid', 'new'] }),
      await first({ has: kind, typed: 'invoice' }),
      await first({ has: kind, typed: 'receipt' }),
    ]).toEqual([4, 5, 3, 3, null])
  },
)

test('an agent that waits for a mail gets the first message after the given time that has the requested words and labels', async () => {
  const first = await inbox([
    { second: 10, labels: ['paid', 'new'], subject: 'Invoice' },
    { second: 11, labels: ['paid', 'new'], subject: 'Invoice', isSent: true },
    { second: 16, labels: ['paid', 'new'], subject: 'Invoice' },
    { second: 15, labels: ['paid', 'new'] },
    { second: 14, labels: ['paid'], subject: 'Invoice' },
    { second: 13, labels: ['new'] },
    { second: 12 },
  ])
  expect([
    await first(),
    await first({ labels: ['new'] }),
    await first({ labels: ['paid', 'new'] }),
    await first({ labels: ['unknown'] }),
    await first({ typed: 'invoice' }),
    await first({ typed: 'invoice', labels: ['paid', 'new'] }),
    await first({ typed: 'receipt' }),
  ]).toEqual([6, 5, 3, null, 4, 2, null])
})

test('if several messages have the same time, a waiting agent gets the message that was stored first', async () => {
  const first = await inbox([
    { second: 11, labels: ['paid'], has: ['code'] },
    { second: 11, labels: ['paid'], has: ['code'] },
  ])
  expect([
    await first(),
    await first({ has: 'code' }),
    await first({ labels: ['paid'] }),
    await first({ typed: 'order' }),
  ]).toEqual([0, 0, 0, 0])
})
