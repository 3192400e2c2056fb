/** The parts of a mail in which one-time codes are searched. */
import { htmlToDescribedText } from '../visibleText/htmlToText.ts'
import { readableText } from '../visibleText/readableText.ts'

/** A picture whose description holds a digit. */
const NUMBERED_PICTURE = /\salt\s{0,9}=\s{0,9}["']?[^"'<>]{0,200}\d/i

/**
 * @param text the text of the mail; if it has none, the text of its HTML.
 * @param seen the text of the HTML, without pictures; `shown`: the visible HTML (visibleHtml.ts), null: none.
 * @returns the input of findCodes (codes.ts). A code that stands in a picture's description is in `html`.
 */
export function codeParts({
  subject,
  text,
  shown,
  seen,
}: {
  subject: string
  text: string
  shown: string | null
  seen: string
}): { subject: string; text: string; html: string | null } {
  if (shown === null) return { subject, text, html: null }
  const html = NUMBERED_PICTURE.test(shown) ? readableText(htmlToDescribedText(shown)) : seen
  return { subject, text, html: html === text ? null : html }
}
