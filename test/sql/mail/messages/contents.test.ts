/** Tests the contents of a message (attachments, HTML and raw mail), which only its project can read. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { SentAttachment } from '../../../../shared/mail/compose/sentAttachment.ts'
import {
  findAttachment,
  findRaw,
  listSentAttachments,
} from '../../../../sql/mail/messages/attachments.ts'
import {
  findMessageHtml,
  findMessageHtmlSize,
  listHtmlMessages,
} from '../../../../sql/mail/messages/messageHtml.ts'
import { findMessage } from '../../../../sql/mail/messages/messages.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newSent, rawMail, receive } from '../../../support/mail/mailRows.ts'
import { newProject } from '../../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const file = (filename: string, changes: Partial<SentAttachment> = {}): SentAttachment => ({
  filename,
  contentType: 'text/plain',
  contentId: null,
  content: Buffer.from(`bytes of ${filename}`),
  ...changes,
})
const part = (type: string, body: string, id = '') =>
  `--b\r\nContent-Type: ${type}\r\n${id === '' ? '' : `Content-ID: <${id}>\r\n`}Content-Transfer-Encoding: base64\r\n\r\n${Buffer.from(body).toString('base64').replace(/.{76}/g, '$&\r\n')}\r\n`
const withParts = (parts: string[], headers = '') =>
  rawMail({
    headers: `${headers}MIME-Version: 1.0\r\nContent-Type: multipart/related; boundary=b\r\n`,
    text: `${parts.join('')}--b--`,
  })

test('an attachment is found by its id in its message, but another project cannot find it', async () => {
  const attachments = Array.from({ length: 11 }, (_, n) => file(`${n + 1}.txt`))
  const sent = await newSent(pool, { attachments })
  const stranger = await newProject(pool)
  const find = (attachmentId: string, projectId = sent.projectId) =>
    findAttachment(pool, { projectId, messageId: sent.messageId, attachmentId })
  const found = await find('att_2')
  expect(found).toMatchObject({
    filename: '2.txt',
    stored: { bytes: Buffer.from('bytes of 2.txt') },
  })
  expect(await find('att_12')).toBe('no attachment')
  expect(await find('att_2', stranger)).toBeNull()
  const listed = await listSentAttachments(pool, noBlobs, sent.row)
  // The list orders attachments by their number, so att_10 comes after att_9. In alphabetical order att_10 would come
  // before att_2.
  expect(listed.map(({ filename, content }) => [filename, content.toString()])).toEqual(
    attachments.map(({ filename }) => [filename, `bytes of ${filename}`]),
  )
})

test('a raw mail can be read only by its own project, and an outbound mail has no raw mail before it is composed', async () => {
  const sent = await newSent(pool)
  const [raw, stranger] = [rawMail(), await newProject(pool)]
  const { messageId } = await receive(pool, sent.projectId, raw)
  expect((await findRaw(pool, noBlobs, sent.projectId, messageId))?.toString()).toBe(raw)
  expect(await findRaw(pool, noBlobs, sent.projectId, sent.messageId)).toBe('not composed')
  expect(await findRaw(pool, noBlobs, stranger, messageId)).toBeNull()
})

test('the HTML of a message is returned with its inline images only', async () => {
  const [projectId, stranger] = [await newProject(pool), await newProject(pool)]
  const html = part('text/html', '<img src="cid:dot">')
  const { messageId } = await receive(
    pool,
    projectId,
    withParts([
      html,
      part('image/png', 'a picture', 'dot'),
      part('image/svg+xml', '<svg/>', 'svg'),
      part('image/png', 'a picture without a name'),
    ]),
  )
  await receive(pool, projectId, withParts([html, part('image/png', 'of another', 'other')]))
  const found = await findMessageHtml(pool, noBlobs, { projectId, messageId })
  expect(found?.images.map(({ contentId, bytes }) => [contentId, bytes.toString()])).toEqual([
    ['<dot>', 'a picture'],
  ])
  expect(await findMessageHtml(pool, noBlobs, { projectId: stranger, messageId })).toBeNull()
})

test('the inline images of a message are returned up to 8 MB in total', async () => {
  const projectId = await newProject(pool)
  const pictures = ['one', 'two', 'three'].map((id) => part('image/png', id, id))
  const raw = withParts([part('text/html', '<p>x</p>'), ...pictures])
  const { messageId } = await receive(pool, projectId, raw)
  await pool.query(
    `update messages set attachments = (
       select jsonb_agg(jsonb_set(a, '{size}', to_jsonb(4 * 1024 * 1024)) order by n)
       from jsonb_array_elements(attachments) with ordinality x (a, n))
     where message_id = $1`,
    [messageId],
  )
  const found = await findMessageHtml(pool, noBlobs, { projectId, messageId })
  expect(found?.images.map(({ contentId }) => contentId).toSorted()).toEqual(['<one>', '<two>'])
  expect(await findMessageHtmlSize(pool, { projectId, messageId })).toBe(
    Buffer.byteLength(found!.html) + 8 * 1024 * 1024,
  )
})

test('if HTML has more than 500,000 characters, the caller gets 500,001 characters, and recognises by them that the HTML is too long', async () => {
  const projectId = await newProject(pool)
  const htmlOf = async (letters: number) => {
    const html = 'é'.repeat(letters)
    const raw = withParts([part('text/html; charset=utf-8', html)])
    const { messageId } = await receive(pool, projectId, raw)
    const about = { projectId, messageId }
    const found = await findMessageHtml(pool, noBlobs, about)
    return [found?.html.trimEnd().length, await findMessageHtmlSize(pool, about)]
  }
  const [short, shortSize] = await htmlOf(1_000)
  expect(short).toBe(1_000)
  expect(shortSize).toBeWithin(2_000, 2_010)
  expect(await htmlOf(600_000)).toEqual([500_001, 1_000_002])
})

test('the size of the HTML of a message without HTML is null', async () => {
  const projectId = await newProject(pool)
  const { messageId } = await receive(pool, projectId)
  expect(await findMessageHtmlSize(pool, { projectId, messageId })).toBeNull()
})

test('the messages with HTML in a thread are listed only for the project of the thread', async () => {
  const sent = await newSent(pool)
  const { projectId } = sent
  const headers = `In-Reply-To: ${sent.messageId}\r\n`
  const html = await receive(pool, projectId, withParts([part('text/html', '<p>x</p>')], headers))
  await receive(pool, projectId, withParts([part('text/html', '<p>y</p>')]))
  const { threadId } = (await findMessage(pool, projectId, sent.messageId))!
  expect(await listHtmlMessages(pool, { projectId, threadId })).toEqual([html.messageId])
  const stranger = await newProject(pool)
  expect(await listHtmlMessages(pool, { projectId: stranger, threadId })).toEqual([])
})
