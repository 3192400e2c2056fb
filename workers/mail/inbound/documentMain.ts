/**
 * Reads attachments for `createReadAttachments`, which kills this process if an attachment takes too much time or
 * memory to read.
 */
import { expand, type Instance, type Window } from '../../../shared/mail/calendar/instances.ts'
import { type ReadOutcome, readDocument } from '../../../shared/mail/documents/readDocument.ts'
import { binarySearchVector, type SearchedMail } from '../../../shared/mail/search/searchTerms.ts'
import { serveParent } from '../../process/child.ts'

/**
 * Describes one request to the child process: a file to read, a message to make searchable, or a calendar event to
 * expand into its instances.
 */
export type DocumentRequest =
  | { bytes: Uint8Array; filename: string; contentType: string }
  | { projectId: string; mail: SearchedMail }
  | { source: string; window: Window & { nowMs?: number } }
export type DocumentAnswer =
  | { outcome: ReadOutcome }
  | { vector: Uint8Array }
  | { instances: Instance[] }

serveParent(async (request: DocumentRequest): Promise<DocumentAnswer> => {
  if ('mail' in request) return { vector: binarySearchVector(request.projectId, request.mail) }
  if ('source' in request) return { instances: instancesOrNone(request) }
  return { outcome: await readDocument(request.bytes, request, Date.now()) }
})

/**
 * Returns the instances of a calendar recurrence rule. Returns no instances if the calendar library refuses the
 * recurrence rule.
 */
function instancesOrNone({ source, window }: { source: string; window: Window }): Instance[] {
  try {
    return expand(source, window)
  } catch {
    return []
  }
}
