/**
 * Reads bounces: delivery status notifications (RFC 3464 in RFC 6522 reports), and free-text bounces of older programs.
 *
 * Anybody can write a mail that looks like a bounce. Therefore a bounce counts only if it names a message of this
 * service and a recipient of that message. Only the address to which the bounce was sent can prove it
 * (bounceAddress.ts).
 */
import type { Attachment, Email } from 'postal-mime'
import { parseAnyAddress } from '../address.ts'
import { parseReferences } from '../threading.ts'

/** Describes one recipient that a bounce names. */
export type BouncedRecipient = {
  /**
   * Holds the addresses of the field Original-Recipient, followed by those of Final-Recipient. A mail host behind a
   * forwarder may know only the address in Final-Recipient.
   */
  addresses: string[]
  action: 'failed' | 'delayed'
  /** Holds the RFC 3463 code, such as 5.1.1. Null means that the bounce has no RFC 3463 code. */
  status: string | null
  /** Holds the error text of the mail host that refused the message, in one line. */
  diagnostic: string
}

export type Bounce = {
  /**
   * Tells whether the bounce names its recipients in delivery-status fields or in X-Failed-Recipients. Without these
   * fields, the code guesses the recipients from the bounce's free text.
   */
  isReport: boolean
  /** Lists possible Message-IDs of the returned message, the most certain first. */
  messageIds: string[]
  recipients: BouncedRecipient[]
  /**
   * Identifies the sent copy that came back. The envelope recipient of the bounce proves which copy this is. Null means
   * that nothing proves the bounce.
   */
  proof: ReturnedCopy | null
}

/** Identifies one recipient's copy of a sent message. */
export type ReturnedCopy = { messageId: string; address: string }

/** Sets the maximum number of characters that the code reads from a bounce report. */
const TEXT_MAX_CHARS = 256 * 1024
const RECIPIENTS_MAX = 100
const IDS_MAX = 20
const DIAGNOSTIC_MAX_LENGTH = 400

const RETURNED =
  /^(message\/rfc822|message\/rfc822-headers|text\/rfc822-headers|message\/global(-headers)?)$/i
const STATUS_PART = /^message\/(global-)?delivery-status$/i
const STATUS_CODE = /(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.])/
const REPLY_CODE = /(?<![\d.])([45])\d\d(?![\d.])/
const MESSAGE_ID_FIELD = /^[> \t]{0,8}Message-ID:[ \t]*(?:\r?\n[ \t]+)?(<[^<>\r\n]{1,998}>)/gim
/** Matches the first line of a returned message inside the text of a bounce. */
const RETURNED_HEADER =
  /^[> \t]{0,8}(?:Return-Path|Received|Message-ID|DKIM-Signature|X-Received|MIME-Version|From|Date|Subject):[ \t]/im
/**
 * Matches header lines such as Return-Path, which mail programs do not show. Therefore only a mail host includes them
 * in a returned message.
 */
const TRACE_HEADER = /^[ \t]{0,8}(?:Return-Path|Received|Message-ID|DKIM-Signature):[ \t]/im
/**
 * Matches a quoted line. The pattern excludes lines that begin with `>>>` and a space, because some mail hosts begin
 * their own lines in a bounce in this way.
 */
const QUOTED_LINE = /^[ \t]{0,8}>(?!>> \S).*$/gm
const ADDRESS = /[\w.!#$%&'*+/=?^`{|}~-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,10}/g

/** Reads a bounce. @returns null if the message is no bounce. */
export function readBounce(email: Email): Bounce | null {
  const report = email.attachments.find(({ mimeType }) => STATUS_PART.test(mimeType))
  const text = (email.text ?? '').slice(0, TEXT_MAX_CHARS).replaceAll('\u0000', '')
  const named = headerOf(email, 'x-failed-recipients')
  const recipients =
    report === undefined ? recipientsOfText(email, text, named) : recipientsOfReport(textOf(report))
  if (recipients.length === 0) return null
  return {
    isReport: report !== undefined || named !== undefined,
    messageIds: originalIds(email, text),
    recipients: recipients.slice(0, RECIPIENTS_MAX),
    proof: null,
  }
}

/**
 * Reads the groups of fields in a delivery report (RFC 3464 §2). The first group of fields concerns the message, and
 * each other group concerns one recipient.
 */
function recipientsOfReport(report: string): BouncedRecipient[] {
  return report.split(/\n[ \t]*\n/).flatMap((group) => {
    const fields = readFields(group)
    const addresses = ['original-recipient', 'final-recipient'].flatMap((name) =>
      readAddress(fields.get(name)),
    )
    const action = fields.get('action')?.trim().toLowerCase() ?? ''
    if (addresses.length === 0 || (action !== 'failed' && action !== 'delayed')) return []
    const said = (fields.get('diagnostic-code') ?? '').replace(/^[\w-]+;[ \t]*/, '')
    const told = STATUS_CODE.exec(fields.get('status') ?? '')?.[1] ?? null
    // If the status is only X.0.0, which tells just the class of the failure, the function looks for a more exact code
    // in the diagnostic text.
    const status =
      told === null || told.endsWith('.0.0') ? (STATUS_CODE.exec(said)?.[1] ?? told) : told
    return [{ addresses: [...new Set(addresses)], action, status, diagnostic: oneLine(said) }]
  })
}

function readFields(group: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const field of group.replace(/\n[ \t]+/g, ' ').split('\n')) {
    const colon = field.indexOf(':')
    if (colon > 0)
      fields.set(field.slice(0, colon).trim().toLowerCase(), field.slice(colon + 1).trim())
  }
  return fields
}

/**
 * Reads a recipient field such as `rfc822; ada@example.com`. The address type (`rfc822`) may be missing, and angle
 * brackets may surround the address.
 */
function readAddress(field: string | undefined): string[] {
  const text = (field ?? '').replace(/^[^;]{0,40};/, '').trim()
  const address = parseAnyAddress(text.replace(/^<|>$/g, ''))
  return address === null ? [] : [address]
}

/**
 * Finds the recipients in a bounce without RFC 3464 fields, such as a bounce of qmail, older Exim, Exchange or Gmail.
 */
function recipientsOfText(
  email: Email,
  text: string,
  named: string | undefined,
): BouncedRecipient[] {
  if (named === undefined && !isPostmaster(email)) return []
  const end = RETURNED_HEADER.exec(text)?.index ?? text.length
  const report = text.slice(0, end).replace(QUOTED_LINE, '')
  const sender = email.from?.address?.toLowerCase()
  const places = [...report.matchAll(ADDRESS)].filter(
    ([address]) => address.toLowerCase() !== sender && !POSTMASTER.test(address),
  )
  // A person whose address is postmaster may also write about errors and name addresses. Therefore a mail from a
  // postmaster counts as a bounce only with an error code, or with a returned message and words for a failure. For
  // other senders, a plain reply code is not enough, because it may be part of a telephone number in an automatic
  // reply.
  const code = isNamedPostmaster(email) ? statusOf(report) : STATUS_CODE.exec(report)
  const isSure = code !== null || (returnsMessage(email, text) && FAILURE.test(report))
  if (named === undefined && !isSure) return []
  const found = new Map<string, BouncedRecipient>()
  for (const [n, place] of places.entries()) {
    const said = report.slice(place.index, places[n + 1]?.index ?? report.length)
    const status = statusOf(said)
    const known = found.get(place[0])
    if (known !== undefined && (known.status !== null || status === null)) continue
    const failed = {
      addresses: [place[0]],
      action: 'failed',
      status,
      diagnostic: oneLine(said),
    } as const
    found.set(place[0], { ...failed, addresses: [place[0]] })
  }
  const listed = named?.match(ADDRESS) ?? []
  // All addresses in X-Failed-Recipients share one status and one diagnostic text, so the function searches the report
  // for both only once.
  const whole =
    listed.length === 0 ? null : { status: statusOf(report), diagnostic: oneLine(report) }
  for (const address of listed) {
    const status = found.get(address)?.status ?? whole!.status
    const diagnostic = found.get(address)?.diagnostic ?? whole!.diagnostic
    found.set(address, { addresses: [address], action: 'failed', status, diagnostic })
  }
  // If the report is only about a delay, the mail host still tries to deliver the mail. Therefore the delivery to the
  // recipient has not failed.
  if (/will (?:be retried|retry|keep trying|continue to try)|no action is required/i.test(report)) {
    return [...found.values()].map((recipient) => ({ ...recipient, action: 'delayed' }))
  }
  return [...found.values()]
}

/** Matches words for a delivery failure. A bounce without a status code must contain such a word. */
const FAILURE = /fail|undeliver|not (?:be )?deliver|unknown|reject|return|error|unable to/i

/** Tells whether a message contains a returned message. Only mail hosts return messages in this form. */
const returnsMessage = (email: Email, text: string): boolean =>
  email.attachments.some(({ mimeType }) => RETURNED.test(mimeType)) || TRACE_HEADER.test(text)

/** Returns the enhanced status code (RFC 3463) of a text, or `X.0.0` for a plain reply code. */
function statusOf(text: string): string | null {
  const enhanced = STATUS_CODE.exec(text)?.[1]
  if (enhanced !== undefined) return enhanced
  const plain = REPLY_CODE.exec(text)?.[1]
  return plain === undefined ? null : `${plain}.0.0`
}

const POSTMASTER = /^(?:mailer[-_]?daemon|postmaster|mail[-_]?delivery[\w-]*)(?:@|$)/i

/** Tells whether a message claims to come from a mail system. */
const isPostmaster = (email: Email): boolean =>
  headerOf(email, 'return-path')?.trim() === '<>' || isNamedPostmaster(email)

const isNamedPostmaster = (email: Email): boolean =>
  POSTMASTER.test(email.from?.address ?? '') || POSTMASTER.test(email.from?.name ?? '')

const headerOf = ({ headers }: Email, name: string): string | undefined =>
  headers.find(({ key }) => key === name)?.value

/**
 * Returns the Message-IDs of the message that a bounce returns, followed by the Message-IDs in In-Reply-To and
 * References.
 */
function originalIds(email: Email, text: string): string[] {
  const returned = email.attachments
    .filter(({ mimeType }) => RETURNED.test(mimeType))
    .map((part) => textOf(part).split(/\n\n/, 1)[0] ?? '')
  const ids = [...returned, text].flatMap((part) =>
    [...part.matchAll(MESSAGE_ID_FIELD)].map(([, id]) => id!),
  )
  const answered = [email.inReplyTo, email.references].flatMap((header) => parseReferences(header))
  return [...new Set([...ids.flatMap((id) => parseReferences(id)), ...answered])].slice(0, IDS_MAX)
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

const oneLine = (text: string): string =>
  text.replace(/\s+/g, ' ').trim().slice(0, DIAGNOSTIC_MAX_LENGTH).toWellFormed()

/**
 * Tells whether a status code means that an address permanently accepts no mail. Such a code is of class 5. A code
 * about the message (size, content) or about the sending service (address, policy, authentication) must not suppress
 * the recipient, so it does not count.
 */
export const isAddressDead = (status: string | null): boolean =>
  status !== null && /^5\./.test(status) && !/^5\.(?:1\.[78]|2\.3|3\.4|6\.\d+|7\.\d+)$/.test(status)

/** Tells whether a reply to RCPT means "no such mailbox" (RFC 3463 X.1.1, X.1.6, X.2.1; RFC 7505 X.1.10). */
export const isNoSuchMailbox = (reply: string): boolean =>
  /^5\d\d[ -]5\.(?:1\.1|1\.6|1\.10|2\.1)(?!\d)/.test(reply)
