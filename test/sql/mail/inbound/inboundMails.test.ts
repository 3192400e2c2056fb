/**
 * Tests that a spooled mail (accepted, but not yet moved to PostgreSQL) becomes one inbound mail for each inbox of an
 * active project. The bytes of a mail are kept while a database row needs them.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import { transaction } from '../../../../sql/db.ts'
import { findAddresses, listAddresses } from '../../../../sql/mail/domains/addresses.ts'
import {
  discardInboundMail,
  findInboundMail,
  insertInboundMails,
} from '../../../../sql/mail/inbound/inboundMails.ts'
import { storeParsedMails } from '../../../../sql/mail/inbound/storeParsedMails.ts'
import { deleteMessage } from '../../../../sql/mail/messages/deleteMail.ts'
import { deleteUnusedRawMails } from '../../../../sql/mail/messages/rawMails.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import {
  addressOf,
  rawMail,
  readInboundMail,
  readRaw,
  receive,
  spooled,
  takeIn,
} from '../../../support/mail/mailRows.ts'
import { crossing, newProject, row, whileHeld } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const inboundMailsOf = async (projectId: string) =>
  (await pool.query('select from inbound_mails where project_id = $1', [projectId])).rowCount
const isRawKept = async (sourceKey: string) =>
  (await pool.query('select from raw_mails where source_key = $1', [sourceKey])).rowCount === 1
const rawIdOf = async (inboundId: string) => (await row(pool, 'inbound_mails', inboundId)).raw_id

describe('a spooled mail (accepted, but not yet in PostgreSQL) is stored once in each active inbox', () => {
  test('if a mail in the spool (disk queue) is moved to the database twice, it is stored once', async () => {
    const projectId = await newProject(pool)
    const mail = spooled([await addressOf(pool, projectId)])
    for (let n = 0; n < 2; n++) await insertInboundMails(pool, [mail])
    expect(await inboundMailsOf(projectId)).toBe(1)
  })

  test('a mail from the spool is stored only for active inboxes, and its bytes are dropped if there is none', async () => {
    const [live, deleted] = [await newProject(pool), await newProject(pool)]
    const gone = await addressOf(pool, deleted)
    await deleteProject(pool, deleted, null)
    const [both, lost] = [spooled([await addressOf(pool, live), gone]), spooled([gone])]
    await insertInboundMails(pool, [both, lost])
    expect([await inboundMailsOf(live), await inboundMailsOf(deleted)]).toEqual([1, 0])
    expect([await isRawKept(both.sourceKey), await isRawKept(lost.sourceKey)]).toEqual([
      true,
      false,
    ])
  })

  test('if a mail from the spool is addressed to two names of one inbox, the inbox stores it once', async () => {
    const projectId = await newProject(pool)
    const address = await addressOf(pool, projectId)
    await insertInboundMails(pool, [spooled([address, address])])
    expect(await inboundMailsOf(projectId)).toBe(1)
  })
})

describe('the service finds an inbound mail until it is processed, and deletes the bytes of a discarded mail', () => {
  test('an inbound mail can be found until it is processed or its project is deleted', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const [open, orphan] = (await takeIn(pool, [one, two])) as [string, string]
    const received = await readInboundMail(pool, open)
    await storeParsedMails(pool, [received])
    await deleteProject(pool, two, null)
    expect(await findInboundMail(pool, noBlobs, open, 1e9)).toBeNull()
    expect(await findInboundMail(pool, noBlobs, orphan, 1e9)).toBeNull()
  })

  test('for an inbound mail above the size limit, only the size is returned', async () => {
    const raw = rawMail({ text: 'x'.repeat(1_000) })
    const [id] = await takeIn(pool, [await newProject(pool)], raw)
    expect(await findInboundMail(pool, noBlobs, id!, raw.length - 1)).toMatchObject({
      size: raw.length,
    })
    expect(await findInboundMail(pool, noBlobs, id!, raw.length)).toMatchObject({
      bytes: Buffer.from(raw),
    })
  })

  test('if an inbound mail is discarded, its raw bytes are deleted unless another inbox needs them', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const [first, second] = (await takeIn(pool, [one, two])) as [string, string]
    const rawId = await rawIdOf(first)
    await discardInboundMail(pool, first)
    expect((await row(pool, 'inbound_mails', first)).state).toBe('discarded')
    expect(await readRaw(pool, rawId)).toContain('Subject')
    await discardInboundMail(pool, second)
    expect(await readRaw(pool, rawId)).toBe('')
  })

  test('an inbound mail that is already stored as a message cannot be discarded', async () => {
    const projectId = await newProject(pool)
    const [id] = await takeIn(pool, [projectId])
    await storeParsedMails(pool, [await readInboundMail(pool, id!)])
    await discardInboundMail(pool, id!)
    expect((await row(pool, 'inbound_mails', id!)).state).toBe('stored')
    expect(await readRaw(pool, await rawIdOf(id!))).toContain('Subject')
  })
})

describe('the raw bytes of a mail are deleted only after the last message that needs them', () => {
  test('the raw bytes of a mail are kept as long as an inbox shows the mail, and are deleted with its last message', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const raw = rawMail()
    const inboundIds = (await takeIn(pool, [one, two], raw)) as [string, string]
    const rawId = await rawIdOf(inboundIds[0])
    const received = [
      await readInboundMail(pool, inboundIds[0]),
      await readInboundMail(pool, inboundIds[1]),
    ]
    for (const one of received) await storeParsedMails(pool, [one])
    const { messageId } = received[0]!.mail.links
    expect(await deleteMessage(pool, one, messageId)).toBe(true)
    await transaction(pool, (client) => deleteUnusedRawMails(client, [rawId]))
    expect(await readRaw(pool, rawId)).toBe(raw)
    expect(await deleteMessage(pool, two, messageId)).toBe(true)
    expect(await readRaw(pool, rawId)).toBeUndefined()
  })

  test('the raw bytes of a mail are kept while a message shows the mail, even if no accepted inbound mail refers to them', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const [first, second] = (await takeIn(pool, [one, two])) as [string, string]
    const rawId = await rawIdOf(first)
    await storeParsedMails(pool, [await readInboundMail(pool, first)])
    await discardInboundMail(pool, second)
    expect(await readRaw(pool, rawId)).toContain('Subject')
    await pool.query('delete from inbound_mails where raw_id = $1', [rawId])
    await transaction(pool, (client) => deleteUnusedRawMails(client, [rawId]))
    expect(await readRaw(pool, rawId)).toContain('Subject')
  })

  test('if both inboxes that need the raw bytes of a mail delete the mail at the same time, the bytes are deleted', async () => {
    const [one, two] = [await newProject(pool), await newProject(pool)]
    const ids = await takeIn(pool, [one, two])
    const rawId = await rawIdOf(ids[0]!)
    for (const id of ids) await storeParsedMails(pool, [await readInboundMail(pool, id)])
    const messageId = (
      await pool.query('select message_id from messages where raw_id = $1', [rawId])
    ).rows[0].message_id
    const hold = 'select from raw_mails where id = $1 for no key update'
    await whileHeld(pool, hold, [rawId], () =>
      [one, two].map((projectId) => deleteMessage(pool, projectId, messageId)),
    )
    expect(await readRaw(pool, rawId)).toBeUndefined()
  })

  test('two processes can delete the same raw mails at the same time, even if they list the mails in opposite orders', async () => {
    const projectId = await newProject(pool)
    const rawIds: string[] = []
    for (let n = 0; n < 4; n++) rawIds.push((await receive(pool, projectId)).rawId)
    await pool.query('delete from inbound_mails where project_id = $1', [projectId])
    await pool.query('delete from messages where project_id = $1', [projectId])
    const hold = 'select from raw_mails where id = any ($1) for update'
    await whileHeld(pool, hold, [rawIds.slice(0, 2)], () =>
      crossing(rawIds).map((ids) =>
        transaction(pool, (client) => deleteUnusedRawMails(client, ids)),
      ),
    )
    for (const id of rawIds) expect(await readRaw(pool, id)).toBeUndefined()
  })
})

test('the addresses of active inboxes are listed in byte order, in pages', async () => {
  const addresses: string[] = []
  for (let n = 0; n < 3; n++) addresses.push(await addressOf(pool, await newProject(pool)))
  const deleted = await newProject(pool)
  const gone = await addressOf(pool, deleted)
  await deleteProject(pool, deleted, null)
  expect(await findAddresses(pool, [addresses[0]!, gone, 'none@mail.test'])).toEqual([
    addresses[0]!,
  ])
  const all = await listAddresses(pool, { after: '', limit: 1_000 })
  expect(all).not.toContain(gone)
  expect(all).toEqual(all.toSorted())
  expect(await listAddresses(pool, { after: all[0]!, limit: 2 })).toEqual(all.slice(1, 3))
})
