/** Tests that each parsed mail of an inbox is stored once, under a unique Message-ID, and in the right thread. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { storeParsedMails } from '../../../../sql/mail/inbound/storeParsedMails.ts'
import { deleteMessage } from '../../../../sql/mail/messages/deleteMail.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  addressOf,
  eventsOf,
  messageOf,
  newSent,
  rawMail,
  readInboundMail,
  readRaw,
  receive,
  takeIn,
} from '../../../support/mail/mailRows.ts'
import { newProject, row, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const threadOf = async (projectId: string, id: string) =>
  (await messageOf(pool, projectId, `<${id}>`))?.threadRow
const idsOf = async (projectId: string): Promise<string[]> => {
  const { rows } = await pool.query(
    'select message_id from messages where project_id = $1 order by row',
    [projectId],
  )
  return rows.map(({ message_id }) => message_id)
}

describe('an inbound mail is stored as a message only once', () => {
  test('if another job run has already stored an inbound mail, the mail is not stored again', async () => {
    const projectId = await newProject(pool)
    const [id] = await takeIn(pool, [projectId])
    const received = await readInboundMail(pool, id!)
    expect(await storeParsedMails(pool, [received])).toEqual(['stored'])
    expect(await storeParsedMails(pool, [received])).toEqual(['gone'])
    expect(await eventsOf(pool, projectId)).toEqual(['message.received'])
    expect((await row(pool, 'inbound_mails', id!)).state).toBe('stored')
  })

  test('an inbound mail is not stored if its project is deleted at the same time', async () => {
    const projectId = await newProject(pool)
    const [id] = await takeIn(pool, [projectId])
    const received = await readInboundMail(pool, id!)
    const deleted = 'update projects set deleted_at = now() where id = $1'
    const store = () => [storeParsedMails(pool, [received])]
    expect(await whileHeld(pool, deleted, [projectId], store)).toEqual([['gone']])
    expect(await idsOf(projectId)).toEqual([])
  })

  test('if two job runs store the same inbound mail at the same time, it is stored once', async () => {
    const projectId = await newProject(pool)
    const [id] = await takeIn(pool, [projectId])
    const received = await readInboundMail(pool, id!)
    const hold = 'select from projects where id = $1 for no key update'
    const outcomes = await whileHeld(pool, hold, [projectId], () =>
      [1, 2].map(() => storeParsedMails(pool, [received])),
    )
    expect(outcomes.flat().toSorted()).toEqual(['gone', 'stored'])
  })
})

describe('if a message arrives again, each inbox still shows it only once', () => {
  test('if a message arrives a second time, the inbox shows it once, and its second raw copy is deleted', async () => {
    const projectId = await newProject(pool)
    const raw = rawMail({ id: 'twice@example.com' })
    await receive(pool, projectId, raw)
    const [id] = await takeIn(pool, [projectId], raw)
    const again = await readInboundMail(pool, id!)
    expect(await storeParsedMails(pool, [again])).toEqual(['retransmission'])
    expect(await idsOf(projectId)).toEqual(['<twice@example.com>'])
    const message = await messageOf(pool, projectId, '<twice@example.com>')
    expect(await row(pool, 'inbound_mails', id!)).toMatchObject({
      state: 'retransmission',
      message_row: message!.row,
    })
    expect(await readRaw(pool, again.inbound.rawId)).toBe('')
  })

  test('if two copies of a message are stored at the same time, the inbox shows the message once', async () => {
    const projectId = await newProject(pool)
    const raw = rawMail()
    const ids = [await takeIn(pool, [projectId], raw), await takeIn(pool, [projectId], raw)].flat()
    const both = [await readInboundMail(pool, ids[0]!), await readInboundMail(pool, ids[1]!)]
    const hold = 'select from projects where id = $1 for no key update'
    const outcomes = await whileHeld(pool, hold, [projectId], () =>
      both.map((one) => storeParsedMails(pool, [one])),
    )
    expect(outcomes.flat().toSorted()).toEqual(['retransmission', 'stored'])
  })

  test('if a deleted message arrives again, it stays deleted in the inbox that deleted it, but not in other inboxes', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const [raw, other] = [rawMail(), rawMail()]
    const { messageId } = await receive(pool, one, raw)
    await deleteMessage(pool, one, messageId)
    expect((await receive(pool, one, raw)).outcome).toBe('retransmission')
    expect((await receive(pool, two, raw)).outcome).toBe('stored')
    expect((await receive(pool, one, other)).outcome).toBe('stored')
  })

  test('if a message arrives again in other inboxes, each of these inboxes stores it', async () => {
    const raw = rawMail()
    for (let n = 0; n < 2; n++) {
      const projectId = await newProject(pool)
      const { outcome, messageId } = await receive(pool, projectId, raw)
      expect([outcome, await idsOf(projectId)]).toEqual(['stored', [messageId]])
    }
  })
})

describe('each message of an inbox has a unique Message-ID', () => {
  test('if an inbox already has a Message-ID, the new message gets the next free Message-ID of the inbox', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    await receive(pool, two, rawMail({ id: 'x.1@example.com' }))
    for (let n = 0; n < 3; n++) await receive(pool, one, rawMail({ id: 'x@example.com' }))
    expect(await idsOf(one)).toEqual(['<x@example.com>', '<x.1@example.com>', '<x.2@example.com>'])
  })

  test('if eight attempts find no unused Message-ID for a message, the service adds a random number to its Message-ID', async () => {
    const projectId = await newProject(pool)
    for (let n = 0; n < 11; n++) await receive(pool, projectId, rawMail({ id: 'y@example.com' }))
    const ids = await idsOf(projectId)
    expect(ids[8]).toBe('<y.8@example.com>')
    // If the numbers of eight attempts are already in use, a random number is added to the Message-ID.
    expect(ids.slice(9)).not.toContain('<y.9@example.com>')
  })

  test('a message gets a Message-ID that differs from those of the other messages in the same batch', async () => {
    const projectId = await newProject(pool)
    await receive(pool, projectId, rawMail({ id: 'y@example.com' }))
    const received = []
    for (const id of ['y@example.com', 'y.1@example.com', 'y.2@example.com']) {
      const [inboundId] = await takeIn(pool, [projectId], rawMail({ id, text: `another ${id}` }))
      received.push(await readInboundMail(pool, inboundId!))
    }
    expect(await storeParsedMails(pool, received)).toEqual(['stored', 'stored', 'stored'])
    expect((await idsOf(projectId)).toSorted()).toEqual([
      '<y.1@example.com>',
      '<y.2@example.com>',
      '<y.3@example.com>',
      '<y@example.com>',
    ])
  })

  test('if two messages with the same Message-ID arrive at the same time, only one of them keeps this Message-ID', async () => {
    const projectId = await newProject(pool)
    const ids = [
      await takeIn(pool, [projectId], rawMail({ id: 'z@example.com' })),
      await takeIn(pool, [projectId], rawMail({ id: 'z@example.com' })),
    ].flat()
    const both = [await readInboundMail(pool, ids[0]!), await readInboundMail(pool, ids[1]!)]
    const hold = 'select from projects where id = $1 for no key update'
    await whileHeld(pool, hold, [projectId], () => both.map((one) => storeParsedMails(pool, [one])))
    expect((await idsOf(projectId)).toSorted()).toEqual(['<z.1@example.com>', '<z@example.com>'])
  })
})

describe('a message joins the thread that it answers, and otherwise starts a thread', () => {
  test('a reply joins the thread of its nearest ancestor message in the inbox', async () => {
    const projectId = await newProject(pool)
    await receive(pool, projectId, rawMail({ id: 'far@example.com' }))
    await receive(pool, projectId, rawMail({ id: 'near@example.com' }))
    const headers = 'References: <far@example.com> <near@example.com> <unknown@example.com>\r\n'
    await receive(pool, projectId, rawMail({ id: 'reply@example.com', headers }))
    const [far, near, reply] = await Promise.all(
      ['far', 'near', 'reply'].map((id) => threadOf(projectId, `${id}@example.com`)),
    )
    expect(reply).toBe(near!)
    expect(far).not.toBe(near!)
  })

  test('a reply never joins a thread of another inbox', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const to = await addressOf(pool, two)
    await receive(pool, one, rawMail({ id: 'secret@example.com', subject: 'Plans', to }))
    const named = rawMail({ id: 'n@example.com', headers: 'In-Reply-To: <secret@example.com>\r\n' })
    await receive(pool, two, named)
    await receive(pool, two, rawMail({ id: 's@example.com', subject: 'Re: Plans', to }))
    const secret = await threadOf(one, 'secret@example.com')
    expect(await threadOf(two, 'n@example.com')).not.toBe(secret!)
    expect(await threadOf(two, 's@example.com')).not.toBe(secret!)
  })

  /** Tells whether the second message joins the thread of the first message. */
  async function joins(
    first: Parameters<typeof rawMail>[0],
    second: Parameters<typeof rawMail>[0],
    between?: (projectId: string, threadRow: string) => Promise<unknown>,
  ): Promise<boolean> {
    const projectId = await newProject(pool)
    await receive(pool, projectId, rawMail({ id: 'first@example.com', ...first }))
    const threadRow = (await threadOf(projectId, 'first@example.com'))!
    await between?.(projectId, threadRow)
    await receive(pool, projectId, rawMail({ id: 'second@example.com', ...second }))
    return (await threadOf(projectId, 'second@example.com')) === threadRow
  }
  const age = (interval: string) => (_projectId: string, threadRow: string) =>
    pool.query('update threads set updated_at = now() - $2::interval where row = $1', [
      threadRow,
      interval,
    ])

  test('a reply without a References header finds its thread by the subject and the participants for 30 days', async () => {
    const [first, reply] = [{ subject: 'Invoice' }, { subject: 'Re: Invoice' }]
    expect(await joins(first, reply)).toBe(true)
    expect(await joins(first, reply, age('29 days'))).toBe(true)
    expect(await joins(first, reply, age('31 days'))).toBe(false)
    expect(await joins(first, { subject: 'Invoice' })).toBe(false)
    expect(await joins(first, { subject: 'Re: Order' })).toBe(false)
    expect(await joins(first, { ...reply, from: 'bob@example.com' })).toBe(false)
    expect(await joins(first, { ...reply, headers: 'In-Reply-To: <else@example.com>\r\n' })).toBe(
      false,
    )
  })

  /** Stores a mail from an author who is not authenticated. @returns the row number of the mail's thread */
  async function receiveUnproven(
    projectId: string,
    mail: Parameters<typeof rawMail>[0] & { id: string },
    dmarc: 'none' | 'fail' = 'none',
  ) {
    const [inboundId] = await takeIn(pool, [projectId], rawMail(mail))
    const forged = await readInboundMail(pool, inboundId!)
    forged.mail.labels.push('unauthenticated')
    forged.authentication = { ...forged.authentication, internal: false, dmarc }
    expect(await storeParsedMails(pool, [forged])).toEqual(['stored'])
    return await threadOf(projectId, mail.id)
  }

  test('a reply whose author is not authenticated joins the thread of an authenticated author only by a Message-ID', async () => {
    const projectId = await newProject(pool)
    await receive(pool, projectId, rawMail({ id: 'first@example.com', subject: 'Offer' }))
    const threadRow = (await threadOf(projectId, 'first@example.com'))!
    const subject = 'Re: Offer'
    expect(await receiveUnproven(projectId, { id: 'forged@example.com', subject })).not.toBe(
      threadRow,
    )
    const headers = 'In-Reply-To: <first@example.com>\r\n'
    expect(await receiveUnproven(projectId, { id: 'b@example.com', subject, headers })).toBe(
      threadRow,
    )
  })

  test('if the authors of a reply and its thread are both not authenticated, the reply joins the thread by its subject, unless DMARC fails', async () => {
    const projectId = await newProject(pool)
    const first = await receiveUnproven(projectId, { id: 'first@example.com', subject: 'Offer' })
    const subject = 'Re: Offer'
    expect(await receiveUnproven(projectId, { id: 'a@example.com', subject })).toBe(first!)
    expect(await receiveUnproven(projectId, { id: 'b@example.com', subject }, 'fail')).not.toBe(
      first,
    )
  })

  test('to find its thread, a reply without References is compared only with the five latest threads that have the same subject', async () => {
    const [first, reply] = [{ subject: 'Report' }, { subject: 'Re: Report' }]
    const others = (count: number) => async (projectId: string) => {
      for (let n = 0; n < count; n++) {
        await receive(pool, projectId, rawMail({ subject: 'Report', from: `x${n}@example.com` }))
      }
    }
    expect(await joins(first, reply, others(4))).toBe(true)
    expect(await joins(first, reply, others(5))).toBe(false)
  })

  test('to find its thread, a reply without References is compared with the participants of the twenty newest messages of a thread', async () => {
    const [first, reply] = [{ subject: 'Notes' }, { subject: 'Re: Notes' }]
    const answers = (count: number) => async (projectId: string) => {
      for (let n = 0; n < count; n++) {
        const headers = 'In-Reply-To: <first@example.com>\r\n'
        await receive(pool, projectId, rawMail({ from: `x${n}@example.com`, headers }))
      }
    }
    expect(await joins(first, reply, answers(19))).toBe(true)
    expect(await joins(first, reply, answers(20))).toBe(false)
  })

  test('if an older message joins a thread, the time of the thread does not move back', async () => {
    const sent = await newSent(pool)
    const later = new Date(Date.now() + 3_600_000)
    await pool.query('update threads set updated_at = $2 where row = $1', [sent.threadRow, later])
    const headers = `In-Reply-To: ${sent.messageId}\r\n`
    await receive(pool, sent.projectId, rawMail({ headers }))
    const { rows } = await pool.query('select * from threads where row = $1', [sent.threadRow])
    expect([rows[0].message_count, rows[0].updated_at]).toEqual([2, later])
    const all = await pool.query('select from threads where project_id = $1', [sent.projectId])
    expect(all.rowCount).toBe(1)
  })
})
