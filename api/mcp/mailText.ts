/** Formats mail for the text of a tool result; structuredContent holds the full data. */
import type { toItem, toWhole } from '../mail/messages/messageDocs.ts'

type Item = ReturnType<typeof toItem>
type Whole = ReturnType<typeof toWhole>

const PREVIEW_MAX_CHARS = 200
const THREAD_BODY_MAX_CHARS = 2_000
const BODY_MAX_CHARS = 20_000

/** The sender's own text, without the quoted history. */
const ownText = (message: Item): string => message.extractedText || message.text

/** One line per message, for a list. */
export function messageLine(message: Item): string {
  const preview = cut(ownText(message).replace(/\s+/g, ' ').trim(), PREVIEW_MAX_CHARS)
  return `${message.messageId} | ${message.createdAt} | from ${message.from.join(', ')} | ${message.labels.join(',')} | ${oneLine(message.subject)} | ${preview}`
}

/** One message of a thread. */
export function messageBlock(message: Whole): string {
  return `${head(message)}\n\n${cut(ownText(message), THREAD_BODY_MAX_CHARS)}`
}

/** One message alone. */
export function wholeMessage(message: Whole): string {
  const files = message.attachments.map(
    ({ filename, contentType, size }) => `${oneLine(filename)} (${contentType}, ${size} bytes)`,
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

const oneLine = (text: string): string => text.replace(/\s+/g, ' ')

/** Cuts at a length, never within a surrogate pair. */
export function cut(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text
  return `${text.slice(0, maxChars).replace(/[\ud800-\udbff]$/, '')}… [cut]`
}
