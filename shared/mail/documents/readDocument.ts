/**
 * Reads the text of a file. The reader runs in a child process, because a hostile file may use up all the time and
 * memory of its process.
 */
import { calendarText } from '../calendar/calendarText.ts'
import type { ReadInvite } from '../calendar/invite.ts'
import { readCalendar } from '../calendar/readCalendar.ts'
import { type Code, findCodes } from '../codes/codes.ts'
import { findLinks, type MailLink } from '../codes/links/mailLinks.ts'
import { readableText } from '../visibleText/readableText.ts'
import { readCsv } from './csvText.ts'
import {
  DocumentError,
  type DocumentKind,
  type DocumentText,
  type FaultReason,
  type Omission,
  TextWriter,
} from './document.ts'
import { kindOf, type NamedFile } from './documentKind.ts'
import { readHtmlDocument } from './htmlDocument.ts'
import { readMailDocument } from './mailDocument.ts'
import { readOfficeFile } from './office/officeFile.ts'
import { readPdf } from './pdf/pdfText.ts'
import { readPlainText } from './plainText.ts'
import { readRtf } from './rtfText.ts'

/**
 * Describes the result of reading a file. The state `none` means that the file contains no text, for example because
 * its pages are scanned pictures.
 */
export type ReadOutcome =
  | {
      state: 'ready'
      kind: DocumentKind
      text: string
      omitted: Omission[]
      codes: Code[]
      links: MailLink[]
      invites: ReadInvite[]
    }
  | { state: 'none'; kind: DocumentKind | null; omitted: Omission[] }
  | { state: 'failed'; kind: DocumentKind | null; reason: FaultReason }

/**
 * Lists the kinds of files whose numbers are data, such as csv. The service does not search them for one-time codes.
 */
const DATA_KINDS: ReadonlySet<DocumentKind> = new Set([
  'csv',
  'xlsx',
  'ods',
  'zip',
  'mail',
  'calendar',
])

/**
 * Reads the text of a file, and finds the one-time codes, links and invites in the file.
 * @param nowMs is the current time in milliseconds. The listed next instances of a calendar event start later than this
 * time.
 */
export async function readDocument(
  bytes: Uint8Array,
  file: NamedFile,
  nowMs: number,
): Promise<ReadOutcome> {
  const first = kindOf(bytes, file)
  if (first === null) return { state: 'none', kind: null, omitted: [] }
  try {
    const { kind, ...found } = await read(bytes, first, nowMs)
    const text = readableText(found.text)
    const omitted = [...found.omitted]
    if (!/[\p{L}\p{N}]/u.test(text)) return { state: 'none', kind, omitted }
    const anchors = found.links.map(anchorOf).join('\n')
    return {
      state: 'ready',
      kind,
      text,
      omitted,
      codes: DATA_KINDS.has(kind) ? [] : findCodes({ subject: '', text, html: null }),
      links: findLinks({ subject: '', text, html: anchors === '' ? null : anchors }),
      invites: found.invites ?? [],
    }
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    return { state: 'failed', kind: first, reason: error.reason }
  }
}

async function read(
  bytes: Uint8Array,
  kind: DocumentKind,
  nowMs: number,
): Promise<DocumentText & { kind: DocumentKind; invites?: ReadInvite[] }> {
  if (kind === 'pdf') return { kind, ...(await readPdf(bytes)) }
  if (kind === 'mail') return { kind, ...(await readMailDocument(bytes)) }
  if (kind === 'rtf') return { kind, ...readRtf(bytes) }
  if (kind === 'csv') return { kind, ...readCsv(bytes) }
  if (kind === 'html') return { kind, ...readHtmlDocument(bytes) }
  if (kind === 'calendar') return { kind, ...readInvites(bytes, nowMs) }
  if (kind === 'text') return { kind, ...readPlainText(bytes) }
  return readOfficeFile(bytes)
}

/**
 * Reads a calendar file, and writes its events as text. A calendar file without events, such as a list of tasks, is
 * read as plain text.
 */
function readInvites(bytes: Uint8Array, nowMs: number): DocumentText & { invites: ReadInvite[] } {
  const invites = readCalendar(bytes, nowMs)
  if (invites.length === 0) return { ...readPlainText(bytes), invites }
  const out = new TextWriter()
  out.write(calendarText(invites))
  return { ...out.done(), invites }
}

const anchorOf = ({ href, text }: { href: string; text: string }): string =>
  `<p><a href="${escaped(href)}">${escaped(text)}</a></p>`

const escaped = (text: string): string =>
  text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`)
