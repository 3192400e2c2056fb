/**
 * Reads complaints about spam (ARF, RFC 5965). A mail host sends a complaint after a person has clicked a button such
 * as "this is spam".
 *
 * Anybody can write a mail that looks like a complaint. Therefore a complaint counts only if it names the envelope
 * sender of a copy that this service has sent. Only the mail hosts that received the copy know this address
 * (bounceAddress.ts).
 */
import type { Attachment, Email } from 'postal-mime'
import { parseAnyAddress } from '../address.ts'

/** Describes a recipient's spam complaint about a sent copy of a message. */
export type Complaint = {
  /** Lists the possible envelope senders of the copy that caused the complaint. */
  returnPaths: string[]
}

/** Sets the maximum number of characters that the code reads from one part of a complaint. */
const TEXT_MAX_CHARS = 256 * 1024
const PATHS_MAX = 10

const REPORT_PART = /^message\/feedback-report$/i
const RETURNED = /^(?:message\/rfc822|message\/rfc822-headers|text\/rfc822-headers)$/i
/**
 * Matches the feedback types that are complaints (RFC 5965 §7.3). The feedback types `not-spam` and `auth-failure` are
 * no complaints.
 */
const FEEDBACK_TYPE = /^Feedback-Type:[ \t]*(?:abuse|fraud|opt-out|opt-out-list)[ \t]*$/im
const RETURN_PATH = /^(?:Return-Path|Original-Mail-From):[ \t]*<?([^<>\s]{1,320})>?[ \t]*$/gim

/** Reads a complaint about spam from a message. @returns null if the message is no complaint. */
export function readComplaint(email: Email): Complaint | null {
  const report = email.attachments.find(({ mimeType }) => REPORT_PART.test(mimeType))
  if (report === undefined) return null
  const text = textOf(report)
  if (!FEEDBACK_TYPE.test(text)) return null
  const parts = [
    text,
    ...email.attachments.filter(({ mimeType }) => RETURNED.test(mimeType)).map(headersOf),
  ]
  const found = parts.flatMap((part) => [...part.matchAll(RETURN_PATH)].map(([, path]) => path!))
  const returnPaths = [...new Set(found)].filter((path) => parseAnyAddress(path) !== null)
  return returnPaths.length === 0 ? null : { returnPaths: returnPaths.slice(0, PATHS_MAX) }
}

function textOf({ content }: Attachment): string {
  const bytes =
    typeof content === 'string' ? Buffer.from(content) : Buffer.from(content as Uint8Array)
  return bytes
    .subarray(0, TEXT_MAX_CHARS)
    .toString('utf8')
    .replaceAll('\u0000', '')
    .replace(/\r\n?/g, '\n')
}

const headersOf = (part: Attachment): string => textOf(part).split(/\n\n/, 1)[0] ?? ''
