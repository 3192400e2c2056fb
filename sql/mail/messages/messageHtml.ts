import { DRAWN_TYPES } from '../../../shared/mail/review/pictures.ts'
import { messageIdHash } from '../../../shared/mail/threading.ts'
import type { Blobs, StoredContent } from '../../blobs/blobs.ts'
import type { Queryable } from '../../db.ts'

/** Lists the messages of a thread that have an HTML body. */
export async function listHtmlMessages(
  db: Queryable,
  { projectId, threadId }: { projectId: string; threadId: string },
): Promise<string[]> {
  const { rows } = await db.query<{ message_id: string }>(
    `select m.message_id from messages m join threads t on t.row = m.thread_row
     where t.project_id = $1 and t.id = $2 and m.html_body is not null`,
    [projectId, threadId],
  )
  return rows.map((row) => row.message_id)
}

/** Describes an image attachment that the HTML body shows by its Content-ID. */
export type InlineImage = { contentId: string; contentType: string; bytes: Buffer }

/**
 * Sets the maximum number of characters of the HTML of a mail that the console draws, because HTML of six million
 * characters blocked the process for five seconds.
 */
export const DRAWN_HTML_MAX_CHARS = 500_000
/** Sets the maximum number of bytes of the inline images of one message together. */
const INLINE_BYTES_MAX = 8 * 1024 * 1024

/**
 * Returns the number of bytes of the HTML body of a message and of its images. @returns null if the message does not
 * exist or has no HTML body.
 */
export async function findMessageHtmlSize(
  db: Queryable,
  { projectId, messageId }: { projectId: string; messageId: string },
): Promise<number | null> {
  const { rows } = await db.query<{ size: number }>({
    name: 'find-message-html-size',
    text: `
      select octet_length(left(html_body, ${DRAWN_HTML_MAX_CHARS + 1})) + least(${INLINE_BYTES_MAX}, coalesce((
               select sum((d ->> 'size')::bigint) from jsonb_array_elements(attachments) d
               where d ->> 'contentId' is not null and lower(d ->> 'contentType') = any ($3)
             ), 0))::int as size
      from messages where project_id = $1 and message_id_hash = $2 and html_body is not null`,
    values: [projectId, messageIdHash(messageId), DRAWN_TYPES],
  })
  return rows[0]?.size ?? null
}

/**
 * Returns the HTML body of a message with its inline images. If the HTML is too long for the console, the function
 * returns one character more than the maximum. The caller recognises such HTML by its length.
 * @returns null if the message does not exist or has no HTML body.
 */
export async function findMessageHtml(
  db: Queryable,
  blobs: Blobs,
  { projectId, messageId }: { projectId: string; messageId: string },
): Promise<{ html: string; images: InlineImage[] } | null> {
  const { rows } = await db.query<{ row: string; html_body: string | null }>({
    name: 'find-message-html',
    text: `select row, left(html_body, ${DRAWN_HTML_MAX_CHARS + 1}) as html_body from messages
           where project_id = $1 and message_id_hash = $2`,
    values: [projectId, messageIdHash(messageId)],
  })
  const found = rows[0]
  if (found?.html_body == null) return null
  const images = await db.query<Omit<InlineImage, 'bytes'> & StoredContent>({
    name: 'list-inline-images',
    text: `
      with described as (
        select d ->> 'attachmentId' as attachment_id, d ->> 'contentId' as content_id,
               lower(d ->> 'contentType') as content_type,
               sum((d ->> 'size')::bigint) over (order by n) as bytes_so_far
        from messages m, jsonb_array_elements(m.attachments) with ordinality x (d, n)
        where m.row = $1 and d ->> 'contentId' is not null and lower(d ->> 'contentType') = any ($2)
      )
      select content_id as "contentId", content_type as "contentType", bytes, blob
      from described join message_attachments using (attachment_id)
      where message_row = $1 and bytes_so_far <= ${INLINE_BYTES_MAX}`,
    values: [found.row, DRAWN_TYPES],
  })
  return {
    html: found.html_body,
    images: await Promise.all(
      images.rows.map(async ({ contentId, contentType, ...stored }) => ({
        contentId,
        contentType,
        bytes: await blobs.of(projectId).read(stored),
      })),
    ),
  }
}
