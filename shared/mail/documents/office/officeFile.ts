import { DocumentError, type DocumentKind, type DocumentText } from '../document.ts'
import { readOpenDocument } from './openDocument.ts'
import { relationsOf, targetsOf } from './packageParts.ts'
import { readSheets } from './sheetText.ts'
import { readSlides } from './slidesText.ts'
import { readWord } from './wordText.ts'
import { listArchive, ZipArchive } from './zipArchive.ts'

/** Maps a folder name to the kind of office file that has its main part in this folder of the zip archive. */
const OFFICE = [
  ['word/', 'docx', readWord],
  ['xl/', 'xlsx', readSheets],
  ['ppt/', 'pptx', readSlides],
] as const
const OPEN_DOCUMENT = /^application\/vnd\.oasis\.opendocument\.(text|spreadsheet|presentation)/
const OPEN_KINDS = { text: 'odt', spreadsheet: 'ods', presentation: 'odp' } as const
const MIMETYPE_BYTES = 100
const CONTAINER = Buffer.from('\xd0\xcf\x11\xe0', 'latin1')
const PASSWORD = Buffer.from('EncryptedPackage', 'utf16le')

/**
 * Reads the text of an office file. For an archive that is no office file, the result lists the names of the files in
 * the archive.
 * @throws {DocumentError} if the file is damaged, encrypted or too large.
 */
export function readOfficeFile(bytes: Uint8Array): DocumentText & { kind: DocumentKind } {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
  if (file.subarray(0, CONTAINER.length).equals(CONTAINER)) {
    throw new DocumentError(file.includes(PASSWORD) ? 'encrypted' : 'malformed')
  }
  const archive = new ZipArchive(bytes)
  const main = targetsOf(relationsOf(archive, ''), 'officeDocument')[0] ?? ''
  for (const [folder, kind, read] of OFFICE) {
    if (main.startsWith(folder)) return { kind, ...read(archive, main) }
  }
  const type = archive.sizeOf('mimetype') > MIMETYPE_BYTES ? null : archive.read('mimetype')
  const named = OPEN_DOCUMENT.exec(Buffer.from(type ?? []).toString('latin1'))?.[1]
  if (named !== undefined) {
    const kind = OPEN_KINDS[named as keyof typeof OPEN_KINDS]
    return { kind, ...readOpenDocument(archive, kind) }
  }
  return { kind: 'zip', ...listArchive(archive) }
}
