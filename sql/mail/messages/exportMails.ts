import { composeMail } from '../../../shared/mail/compose/composeMail.ts'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { pageOf, pages } from '../../account/projects/exportRows.ts'
import { byAge, type Section } from '../../account/projects/exportSection.ts'
import type { Blobs } from '../../blobs/blobs.ts'
import { LostObjectError } from '../../blobs/sealedBlob.ts'
import type { Queryable } from '../../db.ts'
import { listSentAttachments } from './attachments.ts'
import { readRawMail } from './rawMails.ts'

/** Describes one exported message with its sender, its time and its bytes. */
export type ExportedMail = { sender: string; at: Date; bytes: Buffer }

type MailRow = {
  _place: string[]
  row: string
  at: Date
  raw_id: string | null
  sender: string | null
  message_id: string
}

const MAILS: Section = {
  kind: 'mail',
  from: 'messages x',
  order: byAge('created_at'),
  page: 500,
  fields: {
    row: 'x.row',
    at: 'x.created_at',
    raw_id: 'x.raw_id',
    sender: 'x.from_addresses[1]',
    message_id: 'x.message_id',
  },
}
const MAIL_PAGE = { order: MAILS.order, text: pageOf(MAILS) }

/** Yields the messages of a project, oldest first. Only one message is in memory at a time. */
export async function* exportMails(
  db: Queryable,
  blobs: Blobs,
  projectId: string,
): AsyncGenerator<ExportedMail> {
  for await (const rows of pages<MailRow>(db, MAIL_PAGE, projectId)) {
    for (const { at, row, raw_id, sender, message_id } of rows) {
      const original = raw_id === null ? null : await orLost(() => readRawMail(db, blobs, raw_id))
      const bytes = original ?? (await composedAnew(db, blobs, row))
      yield { sender: sender ?? '', at, bytes: named(bytes, message_id) }
    }
  }
}

/**
 * Returns the content that `read` reads. Null means that the object store has lost the content. The export then
 * continues, because otherwise nobody could ever export the rest of the mail.
 */
async function orLost(read: () => Promise<Buffer>): Promise<Buffer | null> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof LostObjectError) return null
    throw error
  }
}

/** Limits how many bytes at the start of a mail the export searches for a header field. */
const HEADER_MAX_BYTES = 64 * 1024

/**
 * Adds the header field X-Purser-Message-ID, with the Message-ID that the service gave to a mail. The function does so
 * if the mail's own Message-ID is missing or different.
 */
function named(bytes: Buffer, messageId: string): Buffer {
  const head = bytes
    .subarray(0, HEADER_MAX_BYTES)
    .toString('latin1')
    .split(/\r?\n\r?\n/, 1)[0]!
  return head.includes(messageId) || !TOKEN.test(messageId)
    ? bytes
    : Buffer.concat([Buffer.from(`X-Purser-Message-ID: ${messageId}\r\n`), bytes])
}

/** Matches a word that a header field can hold without encoding. */
const TOKEN = /^[\x21-\x7e]{1,998}$/
const MEDIA_TYPE = /^[a-z0-9][\w!#$&^.+-]{0,126}\/[a-z0-9][\w!#$&^.+-]{0,126}$/i

type ContentRow = {
  message_id: string
  created_at: Date
  from_addresses: string[]
  to_addresses: string[]
  cc_addresses: string[]
  subject: string
  text_body: string
  html_body: string | null
  in_reply_to: string[]
  reference_ids: string[]
  attachments: Attachment[]
}

/**
 * Composes a message again if it has no raw mail, because the raw mail was removed by age, is lost, or was never
 * composed. The result consists of the stored parts, without lost attachments.
 */
async function composedAnew(db: Queryable, blobs: Blobs, messageRow: string): Promise<Buffer> {
  const { rows } = await db.query<ContentRow>(
    `select message_id, created_at, from_addresses, to_addresses, cc_addresses, subject, text_body, html_body,
       in_reply_to, reference_ids, attachments
     from messages where row = $1`,
    [messageRow],
  )
  const row = rows[0]!
  const lost = Buffer.alloc(0)
  const read: Blobs['read'] = async (stored) => (await orLost(() => blobs.read(stored))) ?? lost
  const files = await listSentAttachments(db, { ...blobs, read }, messageRow)
  const attachments = files.filter(({ content }) => content !== lost)
  const lostCount = files.length - attachments.length
  const without = lostCount === 0 ? '' : `, without ${lostCount} lost attachment(s)`
  const tokens = (given: readonly string[]) => given.filter((one) => TOKEN.test(one))
  return await composeMail({
    messageId: tokens([row.message_id])[0] ?? '',
    date: row.created_at,
    fromName: '',
    fromAddress: tokens(row.from_addresses)[0] ?? '',
    to: tokens(row.to_addresses),
    cc: tokens(row.cc_addresses),
    names: {},
    subject: row.subject,
    text: row.text_body,
    html: row.html_body,
    inReplyTo: tokens(row.in_reply_to),
    references: tokens(row.reference_ids),
    attachments: attachments.map((one) => ({
      ...one,
      contentId: one.contentId !== null && TOKEN.test(one.contentId) ? one.contentId : null,
      contentType: MEDIA_TYPE.test(one.contentType) ? one.contentType : 'application/octet-stream',
    })),
    unsubscribe: null,
    headers: { 'X-Purser-Original': `composed again from the stored parts${without}` },
  })
}
