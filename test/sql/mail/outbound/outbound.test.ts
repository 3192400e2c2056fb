/** Tests that an attempt to send a mail begins with the due recipients, and that all attempts send the same bytes. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { deleteMessage } from '../../../../sql/mail/messages/deleteMail.ts'
import { keepComposed } from '../../../../sql/mail/outbound/composedMails.ts'
import { beginAttempts } from '../../../../sql/mail/outbound/outboundMails.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { begin, newSent, readRaw, recordSent } from '../../../support/mail/mailRows.ts'
import { newProject, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const LATER = new Date(Date.now() + 3_600_000)

describe('an attempt to send a mail begins with the recipients that are due', () => {
  test('a sending attempt begins only if the mail is due and its project is not deleted', async () => {
    const done = await newSent(pool)
    await recordSent(pool, await begin(pool, done))
    const later = await newSent(pool)
    await pool.query('update outbound_mails set next_attempt_at = $2 where message_row = $1', [
      later.row,
      LATER,
    ])
    const orphan = await newSent(pool)
    await deleteProject(pool, orphan.projectId, null)
    for (const { row } of [done, later, orphan]) {
      expect(await beginAttempts(pool, [row])).toEqual([null])
    }
  })

  test('a sending attempt covers only the due recipients of its message', async () => {
    const to = ['due@a.example', 'later@b.example', 'sent@c.example']
    const sent = await newSent(pool, { to })
    const other = await newSent(pool, { to: ['other@d.example'] })
    await pool.query(
      `update outbound_recipients set
         next_attempt_at = case address when 'later@b.example' then $2 else next_attempt_at end,
         state = case address when 'sent@c.example' then 'sent' else state end
       where message_row = $1`,
      [sent.row, LATER],
    )
    expect((await begin(pool, sent)).due).toEqual([
      { address: 'due@a.example', attempts: 0, suppressed: false },
    ])
    expect((await begin(pool, other)).due).toHaveLength(1)
  })

  test('the first sending attempt includes all recipients of its message, even before they are due', async () => {
    const sent = await newSent(pool)
    await pool.query('update outbound_recipients set next_attempt_at = $2 where message_row = $1', [
      sent.row,
      LATER,
    ])
    expect((await begin(pool, sent)).due).toHaveLength(1)
  })

  test('an attempt to send a mail gets also the list of recipients whose next attempts are due later', async () => {
    const sent = await newSent(pool, { to: ['a@example.com', 'b@example.com'] })
    const at = new Date(Date.now() + 300_000)
    await pool.query(
      `update outbound_recipients set next_attempt_at = $2, attempts = 3, state = 'deferred'
       where message_row = $1 and address = 'b@example.com'`,
      [sent.row, at],
    )
    const { due, later } = await begin(pool, sent)
    expect(due.map(({ address }) => address)).toEqual(['a@example.com'])
    expect(later).toEqual([{ address: 'b@example.com', attempts: 3, at }])
  })

  test('an attempt to send a mail gets the list of its recipients that its own project has suppressed', async () => {
    const sent = await newSent(pool, { to: ['A@example.com', 'b@example.com'] })
    const neighbour = await newProject(pool)
    await pool.query(
      `insert into suppressions (project_id, address, reason)
       values ($1, 'a@example.com', 'bounce'), ($2, 'b@example.com', 'bounce')`,
      [sent.projectId, neighbour],
    )
    expect((await begin(pool, sent)).due.map((due) => [due.address, due.suppressed])).toEqual([
      ['A@example.com', true],
      ['b@example.com', false],
    ])
  })

  test('an attempt to send a mail gets the list of its recipients’ domains that are verified mail domains of the service', async () => {
    for (const [domain, status] of [
      ['verified.example', 'verified'],
      ['claimed.example', 'pending'],
      ['elsewhere.example', 'verified'],
    ]) {
      await pool.query(
        `insert into mail_domains (domain, token, dkim_selector, dkim_record, status) values ($1, '', '', '', $2)`,
        [domain, status],
      )
    }
    const sent = await newSent(pool, { to: ['a@Verified.example', 'b@claimed.example'] })
    await newSent(pool, { to: ['c@elsewhere.example'] })
    expect((await begin(pool, sent)).ownDomains).toEqual(['verified.example'])
  })
})

describe('the composed bytes of a message are stored once, and all attempts send these bytes', () => {
  const keep = (messageRow: string, text: string) =>
    keepComposed(pool, [
      { messageRow, sourceKey: crypto.randomUUID(), bytes: Buffer.from(text), blob: null },
    ])

  test('if two attempts compose a message at the same time, the bytes that are stored first are sent', async () => {
    const sent = await newSent(pool)
    const hold = 'select from messages where row = $1 for update'
    const kept = await whileHeld(pool, hold, [sent.row], () =>
      ['one', 'two'].map((text) => keep(sent.row, text)),
    )
    const [first] = kept.flat()
    expect(kept.flat().map((one) => one?.rawId)).toEqual([first!.rawId, first!.rawId])
    expect(kept.flat().filter((one) => one?.isOurs)).toHaveLength(1)
    expect(await keep(sent.row, 'three')).toEqual([{ rawId: first!.rawId, isOurs: false }])
  })

  test('the composed bytes of many messages are stored in one step, each for its own message', async () => {
    const [one, two, gone] = [await newSent(pool), await newSent(pool), await newSent(pool)]
    await deleteMessage(pool, gone.projectId, gone.messageId)
    const earlier = (await keep(two.row, 'earlier'))[0]!
    const composed = [one, gone, two].map(({ row }) => ({
      messageRow: row,
      sourceKey: crypto.randomUUID(),
      bytes: Buffer.from(`bytes of ${row}`),
      blob: null,
    }))
    const [first, none, kept] = await keepComposed(pool, composed)
    expect([none, kept]).toEqual([null, { rawId: earlier.rawId, isOurs: false }])
    expect(await readRaw(pool, first!.rawId)).toBe(`bytes of ${one.row}`)
    expect(await readRaw(pool, earlier.rawId)).toBe('earlier')
  })

  test('composed bytes are not stored for a message that is deleted at the same time', async () => {
    const sent = await newSent(pool)
    const kept = await whileHeld(pool, 'delete from messages where row = $1', [sent.row], () => [
      keep(sent.row, 'one'),
    ])
    expect(kept).toEqual([[null]])
    const nobody = { ...(await begin(pool, await newSent(pool))), messageRow: sent.row }
    expect(await recordSent(pool, nobody)).toBe(false)
  })
})
