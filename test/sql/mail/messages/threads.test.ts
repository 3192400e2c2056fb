/** Tests how threads and their messages are listed in pages while new messages move threads to the front. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { updateLabels } from '../../../../sql/mail/messages/messageLabels.ts'
import { findMessage, listThreadMessages } from '../../../../sql/mail/messages/messages.ts'
import { readThreadDigests } from '../../../../sql/mail/messages/threadDigests.ts'
import {
  findThread,
  listThreads,
  updateThreadLabels,
} from '../../../../sql/mail/messages/threads.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { messageOf, newSent, rawMail, receive } from '../../../support/mail/mailRows.ts'
import { blocked, newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const MINUTE = 60_000
const START = Date.now() - 60 * MINUTE
const at = (minute: number) => new Date(START + minute * MINUTE)

describe('a thread shows and labels its own messages only', () => {
  /** Makes a thread of a sent message and the replies to it, oldest first. */
  async function conversation(answers: number) {
    const sent = await newSent(pool)
    await newSent(pool, { projectId: sent.projectId, subject: 'Another' })
    const ids = [sent.messageId]
    const headers = `In-Reply-To: ${sent.messageId}\r\n`
    for (let n = 0; n < answers; n++) {
      const receivedAt = new Date(Date.now() + (n + 1) * MINUTE)
      const answer = await receive(pool, sent.projectId, rawMail({ headers }), { receivedAt })
      ids.push(answer.messageId)
    }
    const { threadId } = (await findMessage(pool, sent.projectId, sent.messageId))!
    return { ...sent, threadId, ids }
  }

  test('a thread shows its newest messages, oldest first, and no messages of other threads', async () => {
    const { threadRow, ids } = await conversation(2)
    const shown = async (limit: number) =>
      (await listThreadMessages(pool, { threadRow, limit })).map(({ messageId }) => messageId)
    expect(await shown(10)).toEqual(ids)
    expect(await shown(2)).toEqual(ids.slice(1))
  })

  test('a thread can be found and labelled only by its own project, with all its messages and no other messages', async () => {
    const { projectId, threadId, ids } = await conversation(1)
    const [stranger, other] = [await newProject(pool), await newSent(pool, { projectId })]
    const change = { threadId, add: ['x', 'sent'], remove: ['unread'] }
    expect(await findThread(pool, stranger, threadId)).toBeNull()
    expect(await updateThreadLabels(pool, { projectId: stranger, ...change })).toBe(false)
    expect(await updateThreadLabels(pool, { projectId, ...change })).toBe(true)
    const labels = async (id: string) => (await findMessage(pool, projectId, id))?.labels
    expect(await labels(ids[0]!)).toEqual(['sent', 'x'])
    expect(await labels(ids[1]!)).toEqual(['received', 'x', 'sent'])
    expect(await labels(other.messageId)).toEqual(['sent'])
  })

  test('labels can be added to a thread and to its messages at the same time, in any order', async () => {
    const { projectId, threadId, ids } = await conversation(2)
    const rows: string[] = []
    for (const id of ids) rows.push((await messageOf(pool, projectId, id))!.row)
    // The database stores the messages in the opposite order to the order in which they must be locked. A statement
    // that does not sort the rows would lock them in the stored order.
    for (const row of rows.toReversed()) {
      await pool.query('update messages set subject = subject where row = $1', [row])
    }
    const hold = 'select from messages where row = $1 for no key update'
    const inOrder = async () => {
      const client = await pool.connect()
      try {
        await client.query('begin')
        for (const row of rows) await client.query(hold, [row])
        await client.query('commit')
      } finally {
        client.release()
      }
    }
    await whileHeld<unknown>(pool, hold, [rows[0]], () => [
      inOrder(),
      blocked(pool, 1).then(() =>
        updateThreadLabels(pool, { projectId, threadId, add: ['x'], remove: [] }),
      ),
    ])
    expect((await findMessage(pool, projectId, ids[0]!))?.labels).toEqual(['sent', 'x'])
  })

  test('the summary of a thread has the newest message, and tells whether one of the last twenty messages is unread', async () => {
    const { projectId, threadId, ids } = await conversation(21)
    const stranger = await newProject(pool)
    const receivedAt = new Date(Date.now() + 60 * MINUTE)
    await receive(pool, projectId, rawMail({ from: 'bob@example.com' }), { receivedAt })
    const digest = async () =>
      (await readThreadDigests(pool, { projectId, threadIds: [threadId] })).get(threadId)
    const foreign = await readThreadDigests(pool, { projectId: stranger, threadIds: [threadId] })
    expect(foreign.size).toBe(0)
    expect(await digest()).toMatchObject({ from: ['ada@example.com'], unread: true })
    for (const id of ids.slice(2)) {
      await updateLabels(pool, { projectId, messageId: id, add: [], remove: ['unread'] })
    }
    // The summary of a thread reads only the newest twenty messages. The only unread message is older, so the thread
    // counts as read.
    expect((await digest())?.unread).toBe(false)
  })
})

describe('the threads of an inbox are listed in pages, each thread once', () => {
  const subjects = (threads: { subject: string }[]) => threads.map(({ subject }) => subject)
  const page = (
    projectId: string,
    limit: number,
    cursor: Parameters<typeof listThreads>[1]['cursor'] = null,
  ) => listThreads(pool, { projectId, limit, cursor })

  test('the pages of a thread list show each thread once, even if a thread moves to the top between two pages', async () => {
    const [projectId, neighbour] = [await newProject(pool), await newProject(pool)]
    const made: Awaited<ReturnType<typeof newSent>>[] = []
    let foreign: (typeof made)[number] | undefined
    for (const [n, subject] of ['a', 'b', 'c', 'd'].entries()) {
      made.push(await newSent(pool, { projectId, subject }))
      foreign = await newSent(pool, { projectId: neighbour, subject: 'x' })
      // The threads are one minute apart in time, so that their order does not depend on the speed of the machine.
      for (const { threadRow, row } of [made[n]!, foreign]) {
        await pool.query('update threads set updated_at = $2 where row = $1', [threadRow, at(n)])
        await pool.query('update messages set added_at = $2 where row = $1', [row, at(n)])
      }
    }
    const first = await page(projectId, 2)
    expect(subjects(first.threads)).toEqual(['d', 'c'])
    const headers = (id: string) => `In-Reply-To: ${id}\r\n`
    for (const moved of [made[0]!, made[3]!]) {
      await receive(pool, projectId, rawMail({ headers: headers(moved.messageId) }))
    }
    await pool.query('update messages set added_at = $2 where row = $1', [foreign!.row, at(0.5)])
    await receive(pool, neighbour, rawMail({ headers: headers(foreign!.messageId) }))
    await newSent(pool, { projectId, subject: 'e' })
    const second = await page(projectId, 1, first.next)
    expect(subjects(second.threads)).toEqual(['b'])
    const third = await page(projectId, 2, second.next)
    expect([subjects(third.threads), third.next]).toEqual([['a'], null])
    expect(subjects((await page(projectId, 5)).threads)).toEqual(['e', 'd', 'a', 'c', 'b'])
  })
})
