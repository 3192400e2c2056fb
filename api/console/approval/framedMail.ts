import { findMessageHtml, findMessageHtmlSize } from '../../../sql/mail/messages/messageHtml.ts'
import { peopleOf } from '../../http/limits/loopTime.ts'
import type { Services } from '../../http/services.ts'
import { framedHtml } from './framedHtml.ts'

/**
 * Sets the Content-Security-Policy of a mail in a frame. The policy forbids scripts, loading and form submission, and
 * gives the frame an opaque origin. The console page's `frame-src` keeps the frame from navigating to other sites.
 */
const MAIL_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'self'; sandbox"

/** Sets the approximate ratio between the memory for a framed page and the size of the mail's HTML and images. */
const COPIES = 3

/**
 * Returns the HTTP response with the HTML of a mail, which the console and the approval page show in a frame. @returns
 * null if the message does not exist or has no HTML body. @throws {ApiError} 429 or 503 if the project reads too much.
 */
export async function framedMail(
  { pool, blobs, answers, loopTime }: Services,
  about: { projectId: string; messageId: string },
): Promise<Response | null> {
  const reader = { sharer: peopleOf(about.projectId), route: 'a mail in a frame' }
  loopTime.admit(reader)
  const size = await findMessageHtmlSize(pool, about)
  if (size === null) return null
  const html = await answers.during(reader.sharer, size * COPIES, async () => {
    const mail = await findMessageHtml(pool, blobs, about)
    return mail === null ? null : Buffer.from(loopTime.run(reader, () => framedHtml(mail)))
  })
  if (html === null) return null
  const body = await answers.body(reader.sharer, html.length, async () => html)
  return new Response(body, {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': MAIL_POLICY,
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-dns-prefetch-control': 'off',
      'cross-origin-resource-policy': 'same-origin',
    },
  })
}
