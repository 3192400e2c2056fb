import type { DocumentKind } from './document.ts'

/** Holds the name and the media type that a mail gives to an attached file. */
export type NamedFile = { filename: string; contentType: string }

/** Matches the media types of files without text. The service does not read files of these media types. */
const NO_TEXT_TYPE =
  /^(?:image|audio|video|font)\/|^application\/(?:pgp-|pkcs7-|x-pkcs7-)|^multipart\//i
const NO_TEXT_ENDING =
  /\.(?:png|jpe?g|gif|webp|bmp|tiff?|ico|heic|mp[34]|m4a|mov|avi|wav|ogg|woff2?|ttf|exe|dll|p7[sm])$/i
/** Matches the media type of SVG pictures, which consist of text. */
const TEXT_IMAGE = /^image\/svg/i

/**
 * Tells whether a file may contain text, by its name and its media type. The function does not read the bytes of the
 * file.
 */
export const mayHoldText = ({ filename, contentType }: NamedFile): boolean =>
  !TEXT_IMAGE.test(contentType) && !NO_TEXT_TYPE.test(contentType) && !NO_TEXT_ENDING.test(filename)

/** Sets how many bytes at the start of a file decide whether the file is text. */
const SNIFFED_BYTES = 4096
const ENDINGS: ReadonlyMap<string, DocumentKind> = new Map(
  Object.entries<DocumentKind>({
    htm: 'html',
    html: 'html',
    xhtml: 'html',
    csv: 'csv',
    tsv: 'csv',
    eml: 'mail',
  }),
)
const OFFICE_KINDS = ['docx', 'xlsx', 'pptx', 'odt', 'ods', 'odp'] as const

/**
 * Returns the kind of a file, by the file's first bytes, and then by the file's media type and name. @returns null if
 * the file contains no readable text.
 */
export function kindOf(
  bytes: Uint8Array,
  { filename, contentType }: NamedFile,
): DocumentKind | null {
  const head = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, SNIFFED_BYTES))
  const text = head.toString('latin1')
  if (text.startsWith('%PDF-')) return 'pdf'
  if (text.startsWith('PK\x03\x04') || text.startsWith('PK\x05\x06')) return 'zip'
  if (text.startsWith('{\\rtf')) return 'rtf'
  // Only the ending of the name tells the kind of a file in an OLE container. Such a file is an old Office file, or a
  // newer Office document with a password.
  if (text.startsWith('\xd0\xcf\x11\xe0')) {
    return OFFICE_KINDS.find((kind) => endingOf(filename) === kind) ?? null
  }
  const isReadable = isText(head)
  // A PDF may have other bytes before its header (ISO 32000-1, annex H). On the other hand, a text file may quote such
  // a header. Therefore readable text counts as a PDF only if its name or media type says so.
  const isNamedPdf = endingOf(filename) === 'pdf' || /^application\/(?:x-)?pdf/i.test(contentType)
  if (text.slice(0, 1024).includes('%PDF-') && (isNamedPdf || !isReadable)) return 'pdf'
  if (!isReadable) return null
  if (/^(?:\xef\xbb\xbf)?\s{0,99}BEGIN:VCALENDAR/i.test(text)) return 'calendar'
  const type = contentType.toLowerCase()
  if (type === 'message/rfc822' || type === 'message/global') return 'mail'
  if (type === 'text/csv' || type === 'text/tab-separated-values') return 'csv'
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html'
  return ENDINGS.get(endingOf(filename)) ?? 'text'
}

const endingOf = (filename: string): string =>
  filename.slice(filename.lastIndexOf('.') + 1).toLowerCase()

/**
 * Tells whether the bytes at the start of a file are text. UTF-16 text begins with a byte order mark, or every second
 * byte is null. Text in other encodings has only a few control characters.
 */
function isText(head: Buffer): boolean {
  if (head.length === 0) return false
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) return true
  let nulls = 0
  let controls = 0
  for (const byte of head) {
    if (byte === 0) nulls++
    // The control byte ESC (27) is allowed in text, because it begins the shift sequences of ISO-2022.
    else if (byte < 9 || (byte > 13 && byte < 32 && byte !== 27)) controls++
  }
  if (controls > head.length / 100) return false
  return nulls === 0 || nulls > head.length / 4
}
