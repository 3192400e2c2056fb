import { htmlToDescribedText } from '../visibleText/htmlToText.ts'
import { readableText } from '../visibleText/readableText.ts'

/** Matches a picture with a digit in its description. */
const NUMBERED_PICTURE = /\salt\s{0,9}=\s{0,9}["']?[^"'<>]{0,200}\d/i

/**
 * Selects the parts of a mail in which `findCodes` searches for one-time codes.
 * @param text is the plain text of the mail. If the mail has no plain text, `text` is the text of its HTML.
 * @param seen is the text of the mail's visible HTML, without descriptions of pictures. The parameter `shown` is the
 * visible HTML itself (visibleHtml.ts). Null means that the mail has no HTML.
 * @returns the input of `findCodes` (codes.ts). The field `html` also contains the descriptions of pictures, because a
 * description may contain a code.
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
}): { subject: string; text: string; html: string | null; shown: string | null } {
  if (shown === null) return { subject, text, html: null, shown }
  const html = NUMBERED_PICTURE.test(shown) ? readableText(htmlToDescribedText(shown)) : seen
  return { subject, text, html: html === text ? null : html, shown }
}
