/**
 * Formats mail for the text of an MCP tool result. The field structuredContent of the tool result holds the full data.
 */
import type { answerText } from '../../mail/messages/attachmentTextRoutes.ts'
import type { toItem, toWhole } from '../../mail/messages/messageDocs.ts'

type Item = ReturnType<typeof toItem>
type Whole = ReturnType<typeof toWhole>

const PREVIEW_MAX_CHARS = 200
const THREAD_BODY_MAX_CHARS = 2_000
const BODY_MAX_CHARS = 20_000

/** Returns the text that the sender wrote, without the quoted text of earlier messages. */
const ownText = (message: Item): string => message.extractedText || message.text

/** Formats a message as one line of a list for an MCP tool result. */
export function messageLine(message: Item): string {
  const preview = cut(ownText(message).replace(/\s+/g, ' ').trim(), PREVIEW_MAX_CHARS)
  return `${message.messageId} | ${message.createdAt} | from ${message.from.join(', ')} | ${message.labels.join(',')} | ${oneLine(message.subject)} | ${preview}`
}

/** Formats one message of a thread as text for an MCP tool result. */
export function messageBlock(message: Whole): string {
  return `${head(message)}\n\n${cut(ownText(message), THREAD_BODY_MAX_CHARS)}`
}

/** Formats a single message as text for an MCP tool result. */
export function wholeMessage(message: Whole): string {
  const files = message.attachments.map(
    ({ attachmentId, filename, contentType, size, text }) =>
      `${oneLine(filename)} (${attachmentId}, ${contentType}, ${size} bytes${textNote(text)})`,
  )
  const attachments = files.length === 0 ? '' : `\nAttachments: ${files.join('; ')}`
  return `${head(message)}${attachments}\n\n${cut(message.text, BODY_MAX_CHARS)}`
}

function head(message: Whole): string {
  const cc = message.cc.length === 0 ? '' : `\nCc: ${message.cc.join(', ')}`
  return [
    `messageId: ${message.messageId}`,
    `threadId: ${message.threadId}`,
    `Date: ${message.createdAt}`,
    `From: ${message.from.join(', ')}`,
    `To: ${message.to.join(', ')}${cc}`,
    `Subject: ${oneLine(message.subject)}`,
    `Labels: ${message.labels.join(', ')}`,
  ].join('\n')
}

/** Returns a short note that tells whether `mail.get_attachment` can return the text of an attachment. */
const textNote = (text: Whole['attachments'][number]['text']): string =>
  text === undefined || text.state === 'none'
    ? ''
    : text.state === 'ready'
      ? `, ${text.chars} characters of text`
      : `, text ${text.state}`

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Cuts a text to a given length, but never within a surrogate pair. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')}… [cut]`
}

/** Formats a page of an attachment's text, or states the reason why the attachment has no text. */
export function attachmentText(page: Awaited<ReturnType<typeof answerText>>): string {
  const { filename, contentType, state, reason, chars, omitted, text, nextOffset } = page
  const head = `${filename} (${contentType})`
  if (state === 'pending')
    return `${head}: its text is still to be read. Ask again after some seconds.`
  const leftOut = omitted.length === 0 ? '' : `\nLeft out: ${omitted.join(', ')}`
  if (state === 'none') return `${head}: no text.${leftOut}`
  if (state === 'failed') return `${head}: no text (${reason}).`
  const more =
    nextOffset === undefined
      ? ''
      : `\n\n(${chars} characters in all; go on at offset ${nextOffset})`
  return `${head}, ${chars} characters${leftOut}\n\n${text ?? ''}${more}`
}
