import type { ReceivedMail } from '../shared/receivedMail.ts'
import { messageIdHash } from '../shared/threading.ts'
import type { Queryable } from './db.ts'

export type NewReceivedMessage = {
  projectId: string
  threadRow: string
  rawId: string
  /** The identifier to show; differs from the one on the wire where that was taken. */
  messageId: string
  createdAt: Date
  mail: ReceivedMail
}

/** Inserts a received message; the caller holds the inbox's lock. @returns its row number. */
export async function insertMessage(db: Queryable, message: NewReceivedMessage): Promise<string> {
  const { mail, messageId } = message
  const { rows } = await db.query<{ row: string }>({
    name: 'insert-received-message',
    text: `insert into messages (
        project_id, thread_row, raw_id, direction, message_id, message_id_hash, header_message_id, content_hash,
        in_reply_to, reference_ids, from_addresses, to_addresses, cc_addresses, reply_to_addresses,
        subject, text_body, html_body, extracted_text, text_bytes, attachments, labels, created_at)
      values ($1, $2, $3, 'received', $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
              octet_length($15) + octet_length($17), $18, $19, $20)
      returning row`,
    values: [
      message.projectId,
      message.threadRow,
      message.rawId,
      messageId,
      messageIdHash(messageId),
      messageId === mail.links.messageId ? null : mail.links.messageId,
      mail.contentHash,
      mail.links.inReplyTo,
      mail.links.references,
      mail.from,
      mail.to,
      mail.cc,
      mail.replyTo,
      mail.subject,
      mail.text,
      mail.html,
      mail.extractedText,
      JSON.stringify(mail.attachments),
      mail.labels,
      message.createdAt,
    ],
  })
  return rows[0]!.row
}
