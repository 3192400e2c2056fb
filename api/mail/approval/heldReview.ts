import { isUtf8 as isValidUtf8 } from 'node:buffer'
import { type Static, Type as t } from '@sinclair/typebox'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { type Review, reviewOf, type Section } from '../../../shared/mail/review/review.ts'
import { findApproval } from '../../../sql/account/approvals.ts'
import { type HeldMail, heldBytes, readHeldMails } from '../../../sql/mail/approval/heldReads.ts'
import { findAttachment } from '../../../sql/mail/messages/attachments.ts'
import { conflict, notFound } from '../../http/errors.ts'
import { peopleOf } from '../../http/limits/loopTime.ts'
import type { Services } from '../../http/services.ts'
import { hashOfHeld, withHeldMail } from './heldMemory.ts'

/** Describes the query for one page of the text of a mail that waits for approval. */
export const ReviewQuery = t.Object({
  page: t.Optional(
    t.String({ pattern: '^[1-9][0-9]{0,2}$', error: 'be a whole number of 1 to 999' }),
  ),
  seen: t.Optional(t.String({ maxLength: 100 })),
})

/**
 * Holds the error message for a person who approves a held mail (a mail that waits for approval) without having seen
 * all its pages.
 */
export const UNREAD = 'seen must be the seal of the last page: read all pages of the mail'

/** Describes one page of the text of a held mail (a mail that waits for approval). */
export type ReviewPage = {
  sha256: string
  /** Holds the number of the page of the mail that waits for approval, counted from 1. */
  page: number
  pages: number
  sections: Section[]
  /**
   * Lists the reasons why the owner cannot approve the held mail (the mail that waits for approval) at the console. If
   * the list is empty, the owner can approve the mail.
   */
  obstacles: string[]
  /**
   * Holds the seal (a cryptographic proof) of this page of the held mail. It shows that the service has displayed the
   * page. A request for the next page must contain this seal. The approval must contain the seal of the last page.
   */
  seal: string
  hasHtml: boolean
}

const WHOLE_CHARS = 2 ** 30
/**
 * Holds a special page number that stands for all pages of a held mail. The seal (a cryptographic proof) for this
 * number allows the approval of the mail.
 */
const ALL_PAGES = 0

/**
 * Returns a page of the text of a held mail (a mail that waits for approval). The service shows a page only to a person
 * who has seen the page before it. Any other person gets the first page.
 * @param seen is the seal (a cryptographic proof) of the page before, which shows that the person has seen this page.
 * @throws {ApiError} 404 for an unknown approval request.
 */
export async function readReviewPage(
  services: Services,
  { projectId, approvalId }: { projectId: string; approvalId: string },
  { page: asked = '1', seen }: Static<typeof ReviewQuery>,
): Promise<ReviewPage> {
  const approval = await findApproval(services.pool, approvalId)
  if (approval?.projectId !== projectId) throw notFound('Request not found')
  const about = { projectId, messageId: approval.subject }
  const hash = await hashOfHeld(services, about)
  const mails = await readHeldMails(services.pool, projectId, [about.messageId], WHOLE_CHARS)
  const mail = mails.get(about.messageId)
  if (hash === null || mail === undefined) throw notFound('Message not found')
  const sha256 = hash.toString('hex')
  const review = await keptReview(services, { projectId, mail, sha256 })
  if (review === null) throw conflict('The mail changed meanwhile: read it again')
  const { pages, obstacles } = review
  const { seal, isSeal } = services.pageSeals
  const wanted = Number(asked)
  const isNext =
    wanted > 1 && wanted <= pages.length && isSeal({ approvalId, sha256, page: wanted - 1 }, seen)
  const page = isNext ? wanted : 1
  const isWhole = page === pages.length && obstacles.length === 0
  return {
    sha256,
    page,
    pages: pages.length,
    sections: pages[page - 1]!,
    obstacles,
    seal: seal({ approvalId, sha256, page: isWhole ? ALL_PAGES : page }),
    hasHtml: mail.html !== null,
  }
}

/**
 * Returns the review of a held mail: the text that the owner reads before an approval. @returns null if the bytes of
 * the mail have changed since the caller read their hash.
 * @throws {ApiError} 429 if the reviews of the project have taken too much time.
 */
async function keptReview(
  services: Services,
  { projectId, mail, sha256 }: { projectId: string; mail: HeldMail; sha256: string },
): Promise<Review | null> {
  const { messageId, bcc, refused } = mail
  const sendAt = mail.sendAt?.toISOString() ?? null
  const key = JSON.stringify([projectId, messageId, sha256, bcc, refused, sendAt])
  return await services.reviews.of(key, async () => {
    const reader = { sharer: peopleOf(projectId), route: 'the review of a held mail' }
    services.loopTime.admit(reader)
    const about = { projectId, messageId }
    const head = await readHead(services, about)
    if (head?.sha256 !== sha256) return null
    const { attachments } = mail
    const calendars = await readInvitations(services, { ...about, attachments })
    return services.loopTime.run(reader, () =>
      reviewOf({ ...mail, bytes: head.bytes, sendAt, ...calendars }),
    )
  })
}

/**
 * Returns the header of a held mail (a mail that waits for approval) with the SHA-256 of all its bytes. The process
 * holds the bytes only during this read.
 */
async function readHead(
  services: Services,
  about: { projectId: string; messageId: string },
): Promise<{ bytes: Buffer; sha256: string } | null> {
  return await withHeldMail(services, about, async () => {
    const held = await heldBytes(services, about)
    if (held === null) return null
    const end = held.bytes.indexOf('\r\n\r\n')
    const bytes = Buffer.from(held.bytes.subarray(0, end === -1 ? held.bytes.length : end + 4))
    return { bytes, sha256: held.hash.toString('hex') }
  })
}

/**
 * Tells whether a mail program may read an attachment as an invitation. Mail programs ignore the case of the media type
 * and its parameters. Some programs decide by the file name, and some by the name inside the media type.
 */
const isCalendar = ({ filename, contentType }: Attachment): boolean =>
  /^(?:text\/calendar|application\/ics)[ \t]*(?:;|$)/i.test(contentType) ||
  /\.ics["\s.]*(?:;|$)/i.test(contentType) ||
  // The pattern for a file name also allows dots and blanks after the extension .ics, because Windows ignores them
  // there.
  /\.ics[\s.]*$/i.test(filename)

const SNIFFED_BYTES = 1024

/**
 * Tells whether the bytes of a file begin a calendar (RFC 5545 §3.4), because some mail programs decide by the bytes.
 * The function removes null bytes, because UTF-16 has one beside each letter.
 */
const beginsCalendar = (bytes: Buffer): boolean =>
  /^[^\S\n]*BEGIN:VCALENDAR/im.test(
    bytes
      .toString('latin1', 0, SNIFFED_BYTES)
      .replaceAll('\0', '')
      .replace(/^(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)/, ''),
  )

/** Tells whether every mail program reads a calendar file as UTF-8, as the review page does. */
function isUtf8({ contentType }: Attachment, bytes: Buffer): boolean {
  const charsets = contentType.matchAll(/\bcharset[*\d]*[ \t]*=[ \t]*"?([^";\s]*)/gi)
  const isPlain = isValidUtf8(bytes) && !bytes.includes(0)
  return isPlain && [...charsets].every(([, name]) => /^(?:utf-?8|us-ascii)$/i.test(name!))
}

/**
 * Sets how many bytes of memory count for each byte of a calendar invitation. The memory holds the bytes of the
 * invitation, its text, and the text that the owner reads.
 */
const INVITATION_COPIES = 4

/**
 * Returns the texts of the calendar files in a held mail (a mail that waits for approval). An agent may have attached
 * these files, so they may have 25 MB. The function reads other files one after the other, to judge them by their bytes.
 * @throws {ApiError} 503 if the people of the project already use all the memory that they may use.
 */
async function readInvitations(
  { pool, blobs, answers }: Services,
  {
    projectId,
    messageId,
    attachments,
  }: { projectId: string; messageId: string; attachments: readonly Attachment[] },
): Promise<{ invitations: string[]; hasOddInvitation: boolean }> {
  const bytesOf = async ({ attachmentId }: Attachment): Promise<Buffer | null> => {
    const file = await findAttachment(pool, { projectId, messageId, attachmentId })
    if (file === null || file === 'no attachment') return null
    return await blobs.of(projectId).read(file.stored)
  }
  const sharer = peopleOf(projectId)
  const calendars: Attachment[] = []
  for (const file of attachments) {
    const isFound =
      isCalendar(file) ||
      (await answers.during(sharer, file.size, async () => {
        const bytes = await bytesOf(file)
        return bytes !== null && beginsCalendar(bytes)
      }))
    if (isFound) calendars.push(file)
  }
  const size = calendars.reduce((sum, file) => sum + file.size, 0)
  return await answers.during(sharer, INVITATION_COPIES * size, async () => {
    const invitations: string[] = []
    let hasOddInvitation = false
    for (const file of calendars) {
      const bytes = await bytesOf(file)
      if (bytes === null) continue
      invitations.push(bytes.toString())
      hasOddInvitation ||= !isUtf8(file, bytes)
    }
    return { invitations, hasOddInvitation }
  })
}

/**
 * Refuses the approval of a held mail (a mail that waits for approval) if the person has not seen all its pages.
 * @throws {ApiError} 409 if the person has not seen all pages of the mail.
 */
export function requireSeen(
  { pageSeals }: Services,
  { approvalId, sha256, seen }: { approvalId: string; sha256: string; seen: string | undefined },
): void {
  if (!pageSeals.isSeal({ approvalId, sha256, page: ALL_PAGES }, seen)) throw conflict(UNREAD)
}
