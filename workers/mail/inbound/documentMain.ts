/** Reads attachments for `createReadAttachments`, which kills this process when one takes too much. */
import { type ReadOutcome, readDocument } from '../../../shared/mail/documents/readDocument.ts'
import { binarySearchVector, type SearchedMail } from '../../../shared/mail/search/searchTerms.ts'
import { serveParent } from '../../process/child.ts'

/** A file to read, or a message to make searchable. */
export type DocumentRequest =
  | { bytes: Uint8Array; filename: string; contentType: string }
  | { projectId: string; mail: SearchedMail }
export type DocumentAnswer = { outcome: ReadOutcome } | { vector: Uint8Array }

serveParent(
  async (request: DocumentRequest): Promise<DocumentAnswer> =>
    'mail' in request
      ? { vector: binarySearchVector(request.projectId, request.mail) }
      : { outcome: await readDocument(request.bytes, request) },
)
