import { ENCODED_WORD } from '../address.ts'

/** Describes an attachment of a mail that the service will send. */
export type SentAttachment = {
  filename: string
  /** Holds the media type of the attachment, with or without parameters. */
  contentType: string
  /**
   * Holds the Content-ID without angle brackets. The HTML body refers to the attachment as `cid:…`. Null means that the
   * HTML body does not show the attachment.
   */
  contentId: string | null
  content: Buffer
}

/**
 * Inserts a space into an encoded word (RFC 2047) in a display name or a file name, so that no mail program decodes it.
 * RFC 2047 §5 forbids an encoded word in a quoted string, but many mail programs decode it there.
 */
export const literalName = (name: string): string => name.replaceAll(ENCODED_WORD, '= ?')

/** Returns the media type of an invitation that the service writes. */
export const calendarType = (method: 'REQUEST' | 'CANCEL' | 'REPLY'): string =>
  `text/calendar; charset=utf-8; method=${method}`

/**
 * Returns the iTIP method of an invitation that the service has written. @returns null if the file is no invitation of
 * the service.
 */
export const calendarMethod = ({ contentType }: Pick<SentAttachment, 'contentType'>) =>
  (['REQUEST', 'CANCEL', 'REPLY'] as const).find(
    (method) => contentType === calendarType(method),
  ) ?? null

/**
 * Matches a media type: a type, a subtype and parameters (RFC 2045 §5.1). The pattern refuses control characters, so
 * that nobody can add another header field after the media type.
 */
const TOKEN = "[\\w!#$%&'*+.^`{|}~-]+"
const MEDIA_TYPE = new RegExp(
  `^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|"[\\x20\\x21\\x23-\\x5b\\x5d-\\x7e]*"))*$`,
)
export const MEDIA_TYPE_MAX_LENGTH = 255

/**
 * Tells whether a text can be the media type of an attachment. The function refuses a multipart type, because mail
 * programs would parse the content of the attachment.
 */
export const isAttachmentType = (text: string): boolean =>
  text.length <= MEDIA_TYPE_MAX_LENGTH && MEDIA_TYPE.test(text) && !/^multipart\//i.test(text)

/** Sets the maximum number of characters of a Content-ID with angle brackets. */
export const CONTENT_ID_MAX_LENGTH = 257

/**
 * Matches a Content-ID without angle brackets (RFC 2392). The pattern also accepts a bare word, which many mail
 * programs send as Content-ID. It refuses `&`, `#`, `;`, `%` and `=?`, because not all mail programs decode these signs.
 * A recipient could then see another picture than the owner.
 */
const CONTENT_ID = /^(?!.*=\?)[\x21\x24\x27\x2a-\x3a\x3d\x3f-\x5b\x5d-\x7e]{1,255}$/

/** Reads a Content-ID with or without angle brackets. @returns null if the text is malformed. */
export function parseContentId(text: string): string | null {
  const bare = /^<(.*)>$/s.exec(text)?.[1] ?? text
  return CONTENT_ID.test(bare) ? bare : null
}

/**
 * Decodes RFC 4648 §4 base64 with padding. Many encoders write line breaks, so the function accepts them. @returns null
 * if the text is malformed.
 */
export function decodeBase64(text: string): Buffer | null {
  const plain = text.includes('\n') ? text.replace(/[\r\n]+/g, '') : text
  if (plain.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(plain)) return null
  return Buffer.from(plain, 'base64')
}
