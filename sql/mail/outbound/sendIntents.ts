import type { CustomHeaders } from '../../../shared/mail/compose/customHeaders.ts'
import type { SentAttachment } from '../../../shared/mail/compose/sentAttachment.ts'
import type { Unsubscribe } from '../../../shared/mail/compose/unsubscribe.ts'
import { findIdempotent } from '../../account/idempotency.ts'
import type { Queryable } from '../../db.ts'
import type { RefusedRecipient } from './recipientPolicy.ts'

/** Is the operation of the idempotency keys of send and reply. */
export const OPERATION = 'send'

/** Is a send intent: an accepted send or reply with all its content. */
export type SendIntent = {
  projectId: string
  /** Comes from `newMessageId`. A retry of the statement reuses it. */
  messageId: string
  /** Is the thread of a reply; null: a new thread. */
  threadRow: string | null
  from: string
  to: readonly string[]
  cc: readonly string[]
  bcc: readonly string[]
  subject: string
  text: string
  html: string | null
  inReplyTo: readonly string[]
  references: readonly string[]
  /** `blob` is the object that holds the content; absent or null: no object does. */
  attachments: readonly (SentAttachment & { blob?: Buffer | null })[]
  unsubscribe: Unsubscribe | null
  headers: CustomHeaders | null
  /** Holds the display names for To and Cc, by address; null: none. */
  names: Record<string, string> | null
  /** Is the time to send the mail; null: at once. */
  sendAt: Date | null
  /** Tells that the mail waits for the owner, whatever the project's policy says. */
  held: boolean
  /** Is the draft that becomes this mail; null: none. */
  draft: { id: string; version: number } | null
  /** Lists recipients that must not get the mail. */
  refused: readonly RefusedRecipient[]
  /** Holds the caller's idempotency key and the hash of its request; null: no key. */
  key: { name: string; requestHash: Buffer } | null
  /** Holds the fields of the response except `threadId` and `createdAt`. They are stored under the key. */
  answer: object
  /** Is the index of the attachment that is a calendar file; absent or null: none. */
  calendar?: number | null
  /** Is the trace that the intent continues; absent: none. */
  traceparent?: string | null
}

/** Holds the fields of the response that the SQL statement determines. */
export type AcceptedMessage = {
  threadId: string
  createdAt: string
  status: 'queued' | 'scheduled' | 'held'
}

/**
 * Is the result of an intent. `accepted`: it is stored. `repeat`: its key already has a response, or its draft is gone.
 * `gone`: the project or the thread is deleted. `over quota`: the project has reached its daily limit of recipients.
 */
export type SendOutcome =
  | ({ kind: 'accepted' } & AcceptedMessage)
  | { kind: 'repeat' | 'gone' | 'over quota' }

/** Returns the weight of an intent in a batch, in bytes. */
export const intentBytes = ({ text, html, attachments }: SendIntent): number =>
  attachments.reduce(
    (sum, { content }) => sum + content.length,
    text.length + (html === null ? 0 : html.length),
  )

/**
 * Finds the stored response of an idempotency key of send or reply, and the hash of its request. @returns null if there
 * is no response.
 */
export async function findSent(
  db: Queryable,
  projectId: string,
  key: string,
): Promise<{ requestHash: Buffer; sent: AcceptedMessage & { answer: object } } | null> {
  const found = await findIdempotent(db, { projectId, operation: OPERATION, key })
  if (found === null || found.result === null) return null
  // A response that an earlier version stored has no status.
  return { requestHash: found.requestHash, sent: { status: 'queued', ...JSON.parse(found.result) } }
}
