import { newApprovalId, newThreadId } from '../../../shared/ids.ts'
import type { CustomHeaders } from '../../../shared/mail/compose/customHeaders.ts'
import type { SentAttachment } from '../../../shared/mail/compose/sentAttachment.ts'
import type { Unsubscribe } from '../../../shared/mail/compose/unsubscribe.ts'
import type { Attachment } from '../../../shared/mail/parse/parseMail.ts'
import { searchVector } from '../../../shared/mail/search/searchTerms.ts'
import { messageIdHash, subjectKey } from '../../../shared/mail/threading.ts'
import { findIdempotent } from '../../account/idempotency.ts'
import type { Queryable } from '../../db.ts'
import { packBytes } from '../../packedBytes.ts'
import { rowBytes } from '../messages/attachments.ts'
import { ACCEPT_INTENTS, OPERATION } from './acceptIntentsStatement.ts'
import type { RefusedRecipient } from './recipientPolicy.ts'

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

/**
 * Stores the messages, threads, idempotency keys and jobs of send intents in one statement, so that a message and its
 * stored response commit together. One statement for many intents is fast. NOTIFY serialises commits, and 100 intents
 * in one commit cost little more than one.
 * @param dailyLimit recipients that a project may write to in a UTC day; null: no limit.
 * @returns one outcome per intent, in order.
 */
export async function acceptIntents(
  db: Queryable,
  intents: readonly SendIntent[],
  dailyLimit: number | null,
): Promise<SendOutcome[]> {
  const records = intents.map((intent, n) => ({
    n,
    project_id: intent.projectId,
    message_id: intent.messageId,
    hash: messageIdHash(intent.messageId).toString('hex'),
    thread_row: intent.threadRow,
    new_thread_id: intent.threadRow === null ? newThreadId() : null,
    from_address: intent.from,
    to_list: intent.to,
    cc_list: intent.cc,
    bcc_list: intent.bcc,
    subject: intent.subject,
    body: intent.text,
    html: intent.html,
    in_reply_to: intent.inReplyTo,
    reference_ids: intent.references,
    subject_key: subjectKey(intent.subject)?.toString('hex') ?? null,
    search: searchVector(intent.projectId, {
      subject: intent.subject,
      from: [intent.from],
      to: [...intent.to, ...intent.cc, ...intent.bcc],
      text: [intent.text, ...intent.attachments.map(({ filename }) => filename)].join('\n'),
    }),
    attachments: intent.attachments.map(describe),
    unsubscribe: intent.unsubscribe,
    headers: intent.headers,
    names: intent.names,
    stored_bytes: intentBytes(intent),
    refused: intent.refused.map(({ address }) => address),
    reasons: intent.refused.map(({ reason }) => reason),
    recipients: new Set([...intent.to, ...intent.cc, ...intent.bcc]).size - intent.refused.length,
    send_at: intent.sendAt,
    approval_id: newApprovalId(),
    held: intent.held,
    draft_id: intent.draft?.id ?? null,
    draft_version: intent.draft?.version ?? null,
    key: intent.key?.name ?? null,
    request_hash: intent.key?.requestHash.toString('hex') ?? null,
    answer: JSON.stringify(intent.answer),
    traceparent: intent.traceparent ?? null,
    calendar: intent.calendar == null ? null : attachmentId(intent.calendar),
  }))
  const rows = await store(db, acceptValues(JSON.stringify(records), intents, dailyLimit))
  // The batcher then runs each intent alone, which shows the intents above the limit.
  if (rows === null && intents.length > 1) throw new Error('the daily limit was reached')
  if (rows === null) return [{ kind: 'over quota' }]
  const byNumber = new Map(rows.map((row) => [row.n, row]))
  return intents.map((_, n) => {
    const row = byNumber.get(n)
    if (row === undefined) return { kind: 'gone' }
    if (row.accepted)
      return {
        kind: 'accepted',
        threadId: row.thread_id,
        createdAt: row.created_at,
        status: row.status,
      }
    return { kind: row.over_quota ? 'over quota' : 'repeat' }
  })
}

type AcceptedRow = {
  n: number
  thread_id: string
  created_at: string
  accepted: boolean
  status: AcceptedMessage['status']
  over_quota: boolean | null
  is_open: boolean
}

/**
 * Runs the statement. @returns null if nothing was stored. Either a concurrent statement used the quota up (the check
 * of the table fails), or an intent would fit if an earlier intent were left out.
 */
async function store(db: Queryable, values: unknown[]): Promise<AcceptedRow[] | null> {
  try {
    const { rows } = await db.query<AcceptedRow>({
      name: 'accept-messages',
      text: ACCEPT_INTENTS,
      values,
    })
    return rows[0]?.is_open ? null : rows
  } catch (error) {
    const { constraint } = error as { constraint?: string }
    if (constraint === 'send_quotas_within') return null
    throw error
  }
}

const attachmentId = (index: number) => `att_${index + 1}`

/** Describes an attachment for get-message. */
const describe = (
  { filename, contentType, contentId, content }: SentAttachment,
  index: number,
): Attachment => ({
  attachmentId: attachmentId(index),
  filename,
  contentType,
  size: content.length,
  contentId: contentId === null ? null : `<${contentId}>`,
  disposition: contentId === null ? 'attachment' : 'inline',
})

/** Returns the parameters of the statement. */
function acceptValues(records: string, intents: readonly SendIntent[], dailyLimit: number | null) {
  const files = intents.flatMap(({ attachments }, n) =>
    attachments.map((file, index) => ({ ...file, n, id: attachmentId(index) })),
  )
  const { bytes, starts, lengths } = packBytes(files.map(rowBytes))
  const objects = files.map(({ blob }) => blob ?? null)
  const [numbers, ids] = [files.map(({ n }) => n), files.map(({ id }) => id)]
  return [records, numbers, ids, bytes, dailyLimit, starts, lengths, objects]
}

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
