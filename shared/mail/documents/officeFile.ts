import type { DocumentKind, DocumentText } from './document.ts'
import { listArchive, ZipArchive } from './zipArchive.ts'

/** The text of an office file; of any other archive, the names in it. */
export function readOfficeFile(bytes: Uint8Array): DocumentText & { kind: DocumentKind } {
  const archive = new ZipArchive(bytes)
  return { kind: 'zip', ...listArchive(archive) }
}
