/** Reads the mail that is held for the owner's approval, so that the owner can read the mail. */
import { createHash } from 'node:crypto'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Queryable } from '../../db.ts'
import { composedMail, type MailStores } from '../outbound/composedMails.ts'
import { findOutboundContent } from '../outbound/outboundMails.ts'
import { storedHash } from './heldMails.ts'

/** Describes the held mail of an approval request. */
export type HeldMail = {
  messageId: string
  threadId: string
  from: string[]
  to: string[]
  cc: string[]
  bcc: string[]
  subject: string
  text: string
  html: string | null
  attachments: Attachment[]
  deliveryStatus: string
  sendAt: Date | null
  /**
   * Lists the recipients of the held mail (the mail that waits for approval) whom an email rule or a suppression
   * refused.
   */
  refused: string[]
}

/**
 * Returns the project's mails that are held for approval, in a map by Message-ID. @param textMax is the maximum number
 * of characters of a mail's text and of its HTML.
 */
export async function readHeldMails(
  db: Queryable,
  projectId: string,
  messageIds: readonly string[],
  textMax: number,
): Promise<Map<string, HeldMail>> {
  const { rows } = await db.query<HeldMail>(
    `select m.message_id as "messageId", t.id as "threadId", m.from_addresses as "from", m.to_addresses as "to",
       m.cc_addresses as cc, m.bcc_addresses as bcc, m.subject, left(m.text_body, $3) as text,
       left(m.html_body, $3) as html, m.attachments, m.delivery_status as "deliveryStatus", m.send_at as "sendAt",
       array(select r.address from outbound_recipients r
             where r.message_row = m.row and r.state = 'failed' order by r.address) as refused
     from messages m join threads t on t.row = m.thread_row
     where m.project_id = $1 and m.message_id_hash = any ($2::bytea[])`,
    [projectId, messageIds.map(messageIdHash), textMax],
  )
  return new Map(rows.map((row) => [row.messageId, row]))
}

/**
 * Returns the SHA-256 of the bytes that the service will send for a held mail (a mail that waits for approval), without
 * reading the bytes. @returns null if the held mail is deleted, or if the service has not composed its bytes yet.
 */
export async function storedHeldHash(
  db: Queryable,
  about: { projectId: string; messageId: string },
): Promise<Buffer | null> {
  const { rows } = await db.query<{ row: string }>(
    `select row from messages where project_id = $1 and message_id_hash = $2 and raw_id is not null`,
    [about.projectId, messageIdHash(about.messageId)],
  )
  return rows[0] === undefined ? null : await storedHash(db, rows[0].row)
}

/**
 * Returns the bytes that the service will send for a held mail (a mail that waits for approval), and the SHA-256 of
 * these bytes. @returns null if the held mail is deleted.
 */
export async function heldBytes(
  stores: MailStores,
  { projectId, messageId }: { projectId: string; messageId: string },
): Promise<{ bytes: Buffer; hash: Buffer } | null> {
  const mail = await findOutboundContent(stores.pool, projectId, messageId)
  const composed = mail === null ? null : await composedMail(stores, mail)
  if (composed === null) return null
  return { bytes: composed.bytes, hash: createHash('sha256').update(composed.bytes).digest() }
}
