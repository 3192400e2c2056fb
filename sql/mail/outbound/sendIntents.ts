import type { CustomHeaders } from '../../../shared/mail/compose/customHeaders.ts'
import type { SentAttachment } from '../../../shared/mail/compose/sentAttachment.ts'
import type { Unsubscribe } from '../../../shared/mail/compose/unsubscribe.ts'
import { findIdempotent } from '../../account/idempotency.ts'
import type { Queryable } from '../../db.ts'
import type { OwnEventRevision } from '../calendar/ownEvents.ts'
import type { RefusedRecipient } from './recipientPolicy.ts'

/** Holds the name of the API operation under which the service stores the idempotency keys of send and reply. */
export const OPERATION = 'send'

/** Describes a send intent: an accepted API request to send or reply, with all its content. */
export type SendIntent = {
  projectId: string
  /**
   * Holds the Message-ID from `newMessageId`. If the service repeats the SQL statement, the statement uses the same
   * Message-ID.
   */
  messageId: string
  /** Holds the thread that a reply joins. Null means that the mail starts a new thread. */
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
  /**
   * Lists the attachments of the mail to send. The field `blob` names the object with an attachment's bytes in the
   * object store. If `blob` is absent or null, the attachment's bytes are not in the object store.
   */
  attachments: readonly (SentAttachment & { blob?: Buffer | null })[]
  unsubscribe: Unsubscribe | null
  headers: CustomHeaders | null
  /** Holds the display names for To and Cc, by email address. Null means that the addresses have no display names. */
  names: Record<string, string> | null
  /** Holds the time at which the service must send the mail. Null means that the service sends the mail at once. */
  sendAt: Date | null
  /** Tells whether the mail waits for the owner's approval even if the project's send policy requires no approval. */
  held: boolean
  /** Holds the draft that becomes the mail. Null means that the mail does not come from a draft. */
  draft: { id: string; version: number } | null
  /** Lists the recipients to whom the service must not send the mail. */
  refused: readonly RefusedRecipient[]
  /**
   * Holds the caller's idempotency key and the hash of the caller's HTTP request. Null means that the caller gave no
   * idempotency key.
   */
  key: { name: string; requestHash: Buffer } | null
  /**
   * Holds the fields of the API response, except `threadId` and `createdAt`. The service stores these fields of the
   * response under the caller's idempotency key.
   */
  answer: object
  /**
   * Holds the index of the attachment that is a calendar file. If `calendar` is absent or null, no attachment is a
   * calendar file.
   */
  calendar?: number | null
  /**
   * Holds the change that the mail makes to a calendar event of its project. The service stores the change together
   * with the mail, and takes it back if the mail ends unsent. If `ownEvent` is absent or null, the mail changes no
   * event.
   */
  ownEvent?: OwnEventRevision | null
  /**
   * Holds the W3C trace context that the delivery of the mail continues. If `traceparent` is absent, the send intent
   * (the API request to send or reply) has no trace context.
   */
  traceparent?: string | null
}

/** Holds the fields of the API response whose values the database determines. */
export type AcceptedMessage = {
  threadId: string
  createdAt: string
  status: 'queued' | 'scheduled' | 'held'
}

/**
 * Describes the result of a send intent (an API request to send or reply). The kind `accepted` means that the intent is
 * stored. The kind `repeat` means that its idempotency key already has a response, or that the draft no longer exists.
 * The kind `gone` means that the project is deleted, and `no thread` that the thread of the reply is deleted. The kind
 * `over quota` means that the project has reached its daily limit on recipients. The kind `event changed` means that
 * another change of the mail's event came first.
 */
export type SendOutcome = ({ kind: 'accepted' } & AcceptedMessage) | Refused

/**
 * Describes a send intent (an API request to send or reply) that the service refuses. The type {@link SendOutcome}
 * explains the kinds.
 */
export type Refused = { kind: 'repeat' | 'gone' | 'no thread' | 'over quota' | 'event changed' }

/**
 * Returns the number of bytes of the texts and attachments of a send intent (an API request to send or reply). The
 * texts count as UTF-8, as in the database.
 */
export const intentBytes = ({ text, html, attachments }: SendIntent): number =>
  attachments.reduce(
    (sum, { content }) => sum + content.length,
    Buffer.byteLength(text) + (html === null ? 0 : Buffer.byteLength(html)),
  )

/**
 * Finds the stored response under an idempotency key of send or reply, and the hash of the HTTP request. @returns null
 * if no response is stored under the idempotency key.
 */
export async function findSent(
  db: Queryable,
  projectId: string,
  key: string,
): Promise<{ requestHash: Buffer; sent: AcceptedMessage & { answer: object } } | null> {
  const found = await findIdempotent(db, { projectId, operation: OPERATION, key })
  if (found === null || found.result === null) return null
  // A response that an earlier version stored has no status, so its `status` becomes `queued`.
  return { requestHash: found.requestHash, sent: { status: 'queued', ...JSON.parse(found.result) } }
}
