import { HIDDEN_TEXT_LABEL, parseMail } from '../parse/parseMail.ts'
import { type DocumentText, TextWriter } from './document.ts'

/** Sets the maximum depth of nested attached mails that the mail reader reads. */
const DEPTH_MAX = 3

/**
 * Reads the header and the text of a mail in a file, and of the mails attached to it. The text ends with the names of
 * the mail's other attachments, which the mail reader does not open.
 */
export async function readMailDocument(bytes: Uint8Array, depth = 0): Promise<DocumentText> {
  const mail = await parseMail(bytes, 'mail.invalid')
  const out = new TextWriter()
  if (mail.labels.includes(HIDDEN_TEXT_LABEL)) out.omitted.add('hidden-text')
  const fields = [
    ['From', mail.from.join(', ')],
    ['To', mail.to.join(', ')],
    ['Cc', mail.cc.join(', ')],
    ['Subject', mail.subject],
  ] as const
  for (const [name, value] of fields) if (value !== '') out.write(`${name}: ${value}\n`)
  out.write(`\n${mail.text}\n`)
  if (mail.attachments.length > 0) out.write('\n')
  for (const { filename, contentType, size } of mail.attachments) {
    out.write(`Attachment: ${filename} (${contentType}, ${size} bytes)\n`)
  }
  for (const { href, text } of mail.mailLinks) out.link(href, text)
  const mails = mail.attachments.filter(({ contentType }) => /^message\/rfc822/i.test(contentType))
  for (const { content } of depth < DEPTH_MAX ? mails : []) {
    if (out.isFull) break
    const inner = await readMailDocument(content, depth + 1)
    out.write(`\n${inner.text}\n`)
    for (const kind of inner.omitted) out.omitted.add(kind)
    for (const { href, text } of inner.links) out.link(href, text)
  }
  return out.done()
}
