import type { SentAttachment } from '../../../shared/mail/compose/sentAttachment.ts'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Blobs, StoredContent } from '../../blobs/blobs.ts'
import type { Queryable } from '../../db.ts'
import { packBytes } from '../../packedBytes.ts'

/**
 * Holds the decoded bytes of one attachment. The field `blob` names the object with the attachment's bytes in the
 * object store. If `blob` is absent or null, the attachment's bytes are not in the object store.
 */
export type AttachmentContent = {
  attachmentId: string
  content: Uint8Array
  blob?: Buffer | null
}

/**
 * Returns the bytes that the caller must store in the database row of an attachment. The row holds no bytes if the
 * object store holds the attachment.
 */
export const rowBytes = ({ content, blob }: Omit<AttachmentContent, 'attachmentId'>): Uint8Array =>
  blob == null ? content : NO_BYTES
const NO_BYTES = new Uint8Array()

/**
 * Writes large attachments to the object store, before the caller stores their database rows. The function writes one
 * at a time, because two copies of all attachments would take too much memory.
 * @returns the hash of each attachment's object in the object store, in the order of the attachments. A null hash means
 * that the database row of the attachment holds the bytes.
 * @throws {BlobsAwayError} if the object store is unavailable.
 */
export async function keepAttachments(
  blobs: Blobs,
  files: readonly { content: Uint8Array }[],
): Promise<(Buffer | null)[]> {
  const objects: (Buffer | null)[] = []
  for (const { content } of files) objects.push(await blobs.keep(content))
  return objects
}

/**
 * Sets the maximum number of bytes of attachments in one SQL statement. A larger attachment gets a separate statement.
 */
const STATEMENT_BYTES = 1024 * 1024

/** Stores the attachments of a message in the attachment table, in batches. */
export async function insertAttachments(
  db: Queryable,
  messageRow: string,
  attachments: readonly AttachmentContent[],
): Promise<void> {
  for (const batch of batches(attachments)) {
    const { bytes, starts, lengths } = packBytes(batch.map(rowBytes))
    await db.query({
      name: 'insert-attachments',
      text: `insert into message_attachments (message_row, attachment_id, bytes, blob)
             select $1, a.id, substring($3::bytea from a.start for a.length), a.blob
             from unnest($2::text[], $4::int[], $5::int[], $6::bytea[]) a (id, start, length, blob)`,
      values: [
        messageRow,
        batch.map(({ attachmentId }) => attachmentId),
        bytes,
        starts,
        lengths,
        batch.map(({ blob }) => blob ?? null),
      ],
    })
  }
}

function* batches(attachments: readonly AttachmentContent[]): Generator<AttachmentContent[]> {
  let batch: AttachmentContent[] = []
  let bytes = 0
  for (const attachment of attachments) {
    if (batch.length > 0 && bytes + rowBytes(attachment).length > STATEMENT_BYTES) {
      yield batch
      batch = []
      bytes = 0
    }
    batch.push(attachment)
    bytes += rowBytes(attachment).length
  }
  if (batch.length > 0) yield batch
}

/** Describes a stored attachment with its name and media type. */
export type StoredAttachment = { filename: string; contentType: string; bytes: Buffer }

/** Describes an attachment before its content is read. */
type FoundAttachment = Omit<StoredAttachment, 'bytes'> & { size: number; stored: StoredContent }

/**
 * Finds one attachment of a message. @returns `'no attachment'` if the message exists but lacks the attachment. Null
 * means that the project has no such message.
 */
export async function findAttachment(
  db: Queryable,
  {
    projectId,
    messageId,
    attachmentId,
  }: Record<'projectId' | 'messageId' | 'attachmentId', string>,
): Promise<FoundAttachment | 'no attachment' | null> {
  const { rows } = await db.query<{
    filename: string | null
    content_type: string | null
    bytes: Buffer | null
    blob: Buffer | null
    size: number
  }>({
    name: 'find-attachment',
    text: `
      select d.described ->> 'filename' as filename, d.described ->> 'contentType' as content_type, a.bytes, a.blob,
        coalesce(b.size, octet_length(a.bytes)) as size
      from messages m
      left join message_attachments a on a.message_row = m.row and a.attachment_id = $3
      left join blobs b on b.hash = a.blob
      left join lateral (
        select described from jsonb_array_elements(m.attachments) described
        where described ->> 'attachmentId' = $3) d on true
      where m.project_id = $1 and m.message_id_hash = $2`,
    values: [projectId, messageIdHash(messageId), attachmentId],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { filename, content_type: contentType, bytes, blob, size } = row
  if (filename === null || contentType === null || bytes === null) return 'no attachment'
  return { filename, contentType, size, stored: { bytes, blob } }
}

/**
 * Returns the attachments and the sender of a received message, so that a worker process can read the attachments as
 * aggregate reports. @returns null if the received message is deleted.
 */
export async function findReportMail(
  db: Queryable,
  blobs: Blobs,
  messageRow: string,
): Promise<{ from: string; isProven: boolean; files: SentAttachment[] } | null> {
  const { rows } = await db.query<{ from: string; dmarc: string }>(
    `select coalesce(from_addresses[1], '') as from, authentication ->> 'dmarc' as dmarc
     from messages where row = $1`,
    [messageRow],
  )
  const [row] = rows
  if (row === undefined) return null
  const files = await listSentAttachments(db, blobs, messageRow)
  return { from: row.from, isProven: row.dmarc === 'pass', files }
}

/** Lists the attachments of a message in their order in the message. */
export async function listSentAttachments(
  db: Queryable,
  blobs: Blobs,
  messageRow: string,
): Promise<SentAttachment[]> {
  const { rows } = await db.query<StoredContent & { described: Attachment }>({
    name: 'list-sent-attachments',
    text: `
      select d.described, a.bytes, a.blob
      from messages m cross join lateral jsonb_array_elements(m.attachments) with ordinality d (described, place)
      join message_attachments a on a.message_row = m.row and a.attachment_id = d.described ->> 'attachmentId'
      where m.row = $1 order by d.place`,
    values: [messageRow],
  })
  return await Promise.all(
    rows.map(async ({ described: { filename, contentType, contentId }, ...stored }) => ({
      filename,
      contentType,
      contentId: contentId === null ? null : contentId.slice(1, -1),
      content: await blobs.read(stored),
    })),
  )
}

/**
 * Returns the size in bytes of a message's original, without reading the original. For a sent message that is not
 * composed yet, the size is an estimate, because Base64 makes attachments longer. @returns null for an unknown message.
 */
export async function findRawSize(
  db: Queryable,
  projectId: string,
  messageId: string,
): Promise<number | null> {
  const { rows } = await db.query<{ size: string }>({
    name: 'find-raw-size',
    text: `select coalesce(b.size, octet_length(r.bytes), (m.stored_bytes * 1.4)::bigint) as size
           from messages m left join raw_mails r on r.id = m.raw_id left join blobs b on b.hash = r.blob
           where m.project_id = $1 and m.message_id_hash = $2`,
    values: [projectId, messageIdHash(messageId)],
  })
  return rows[0] === undefined ? null : Number(rows[0].size)
}

/**
 * Finds the raw mail of a message. The result `'not composed'` means that the outbound mail has no raw mail yet,
 * because nothing has fixed its bytes. The result `'expired'` means that the raw mail was removed because of its age.
 * Null means that the project has no such message.
 */
export async function findRaw(
  db: Queryable,
  blobs: Blobs,
  projectId: string,
  messageId: string,
): Promise<Buffer | 'not composed' | 'expired' | null> {
  const { rows } = await db.query<{
    bytes: Buffer | null
    blob: Buffer | null
    raw_expired: boolean
  }>({
    name: 'find-raw',
    text: `select r.bytes, r.blob, m.raw_expired from messages m left join raw_mails r on r.id = m.raw_id
           where m.project_id = $1 and m.message_id_hash = $2`,
    values: [projectId, messageIdHash(messageId)],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { bytes, blob } = row
  if (bytes === null) return row.raw_expired ? 'expired' : 'not composed'
  return await blobs.of(projectId).read({ bytes, blob })
}
