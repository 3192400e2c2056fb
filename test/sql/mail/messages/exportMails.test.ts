/** Tests the bytes in which the messages of a project are exported. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { exportMails } from '../../../../sql/mail/messages/exportMails.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
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

async function exported(projectId: string) {
  const mails: { sender: string; text: string }[] = []
  for await (const { sender, bytes } of exportMails(pool, noBlobs, projectId))
    mails.push({ sender, text: bytes.toString() })
  return mails
}

test('received messages are exported with their original bytes, oldest first, and only from the project itself', async () => {
  const [projectId, other] = [await newProject(pool), await newProject(pool)]
  const raws = [rawMail({ text: 'First' }), rawMail({ text: 'Second', from: 'bob@example.com' })]
  for (const raw of raws) await receive(pool, projectId, raw)
  await receive(pool, other, rawMail())
  expect(await exported(projectId)).toEqual([
    { sender: 'ada@example.com', text: raws[0]! },
    { sender: 'bob@example.com', text: raws[1]! },
  ])
})

test('an exported message without the service’s Message-ID in its header gets an extra header field with this id', async () => {
  const projectId = await newProject(pool)
  const raw = 'From: ada@example.com\r\nSubject: S\r\n\r\nText\r\n'
  const { messageId } = await receive(pool, projectId, raw)
  const named = { sender: 'ada@example.com', text: `X-Purser-Message-ID: ${messageId}\r\n${raw}` }
  expect(await exported(projectId)).toEqual([named])
  // A Message-ID in the body does not count as a header field.
  const { row } = (await messageOf(pool, projectId, messageId))!
  await pool.query(
    'update raw_mails set bytes = $2 where id = (select raw_id from messages where row = $1)',
    [row, Buffer.from(`${raw}${messageId}\r\n`)],
  )
  expect((await exported(projectId))[0]!.text).toStartWith(named.text)
  await pool.query('update messages set message_id = $2 where row = $1', [row, '<a b@x>'])
  expect((await exported(projectId))[0]!.text).toStartWith(raw)
})

test('if the raw bytes of an exported message are missing, the mail is composed again, with valid header fields only', async () => {
  const projectId = await newProject(pool)
  const file = { filename: 'a.png', contentType: 'image/png', content: Buffer.from('PNG') }
  const { row, messageId } = await newSent(pool, {
    projectId,
    text: 'Body text',
    inReplyTo: ['<parent@example.com>'],
    attachments: [
      { ...file, contentId: 'logo' },
      { ...file, contentType: 'no type', contentId: 'a b' },
    ],
  })
  await pool.query(
    `update messages set cc_addresses = '{bob@example.com,"two words"}' where row = $1`,
    [row],
  )
  const [{ sender, text }] = (await exported(projectId)) as [{ sender: string; text: string }]
  expect(sender).toBe('agent@mail.test')
  for (const part of [
    `Message-ID: ${messageId}`,
    'In-Reply-To: <parent@example.com>',
    'Cc: bob@example.com\r\n',
    'X-Purser-Original: composed again from the stored parts',
    'Body text',
    'Content-Id: <logo>',
    'Content-Type: image/png',
    'Content-Type: application/octet-stream',
    Buffer.from('PNG').toString('base64'),
  ])
    expect(text.toLowerCase()).toContain(part.toLowerCase())
  for (const part of ['two words', 'no type', 'a b>', 'X-Purser-Message-ID'])
    expect(text).not.toContain(part)
})
