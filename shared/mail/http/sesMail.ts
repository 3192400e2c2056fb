/**
 * Reads the notifications of Amazon SES through SNS about a received mail, a bounce, or a complaint.
 * https://docs.aws.amazon.com/ses/latest/dg/receiving-email-notifications-contents.html
 */
import { isEnvelopeAddress, parseAnyAddress } from '../address.ts'
import type { AuthenticationWord } from '../parse/authentication.ts'
import { detailOf, type RelayReport, withoutNul } from './relayReport.ts'
import { type Envelope, SignedMailError } from './signedMail.ts'

/** Describes a mail from Amazon SES with its bytes, or with the bucket object that holds the bytes. */
type SesMail = {
  kind: 'mail'
  envelope: Envelope
  spf: AuthenticationWord | null
  content: { bytes: Buffer } | { bucket: string; key: string }
}
export type SesNews = SesMail | { kind: 'reports'; reports: RelayReport[] } | { kind: 'other' }

const RECIPIENTS_MAX = 100
const TEXT_MAX_CHARS = 1_000

const VERDICTS: Record<string, AuthenticationWord> = {
  PASS: 'pass',
  FAIL: 'fail',
  GRAY: 'neutral',
  PROCESSING_FAILED: 'temperror',
}

type Fields = Record<string, unknown>
const fieldsOf = (value: unknown): Fields => Object(value)
const textOf = (value: unknown): string =>
  typeof value === 'string' ? withoutNul(value).slice(0, TEXT_MAX_CHARS) : ''
const listOf = (value: unknown): unknown[] =>
  Array.isArray(value) ? value.slice(0, RECIPIENTS_MAX) : []
const isAddress = (value: unknown): value is string =>
  typeof value === 'string' && parseAnyAddress(value) !== null
const isOfEnvelope = (value: unknown): value is string =>
  typeof value === 'string' && isEnvelopeAddress(value)

/**
 * Reads the message of an SES notification. @throws {SignedMailError} if the notification lacks the recipients or the
 * content of the mail.
 */
export function readSes(json: string): SesNews {
  let body: Fields
  try {
    body = fieldsOf(JSON.parse(json))
  } catch {
    // If the message of the SNS topic is no JSON, a person has probably published the message as a test.
    return { kind: 'other' }
  }
  const kind = textOf(body.notificationType ?? body.eventType)
  if (kind === 'Received') return mailOf(body)
  if (kind === 'Bounce') return { kind: 'reports', reports: bouncesOf(body) }
  if (kind === 'Complaint') return { kind: 'reports', reports: complaintsOf(body) }
  return { kind: 'other' }
}

function mailOf(body: Fields): SesMail {
  const receipt = fieldsOf(body.receipt)
  const action = fieldsOf(receipt.action)
  const to = listOf(receipt.recipients).filter(isOfEnvelope)
  if (to.length === 0) throw new SignedMailError(400, 'receipt.recipients: must hold addresses')
  const source = fieldsOf(body.mail).source
  const envelope = { from: isOfEnvelope(source) ? source : '', to }
  const spf = VERDICTS[textOf(fieldsOf(receipt.spfVerdict).status)] ?? null
  if (action.type === 'S3') {
    const content = { bucket: textOf(action.bucketName), key: textOf(action.objectKey) }
    return { kind: 'mail', envelope, spf, content }
  }
  // The encoding must be Base64, because with UTF-8, SES changes bytes of the mail, and its DKIM signatures become
  // invalid.
  if (textOf(action.encoding).toUpperCase() !== 'BASE64') {
    throw new SignedMailError(
      400,
      'receipt.action.encoding: must be Base64; set it in the rule of SES',
    )
  }
  if (typeof body.content !== 'string') throw new SignedMailError(400, 'content: must be a text')
  const bytes = Buffer.from(body.content, 'base64')
  return { kind: 'mail', envelope, spf, content: { bytes } }
}

function bouncesOf(body: Fields): RelayReport[] {
  const bounce = fieldsOf(body.bounce)
  if (bounce.bounceType !== 'Permanent') return []
  return listOf(bounce.bouncedRecipients)
    .map(fieldsOf)
    .filter(({ emailAddress }) => isAddress(emailAddress))
    .map(({ emailAddress, status, diagnosticCode }) => ({
      ...aboutCopy(body),
      kind: 'bounce' as const,
      address: emailAddress as string,
      status: /^5\.\d{1,3}\.\d{1,3}$/.exec(textOf(status))?.[0] ?? '5.1.1',
      detail: detailOf(textOf(diagnosticCode)),
    }))
}

function complaintsOf(body: Fields): RelayReport[] {
  const complaint = fieldsOf(body.complaint)
  const type = textOf(complaint.complaintFeedbackType)
  if (type === 'not-spam' || type === 'auth-failure') return []
  const addresses = listOf(complaint.complainedRecipients)
    .map((one) => fieldsOf(one).emailAddress)
    .filter(isAddress)
  // The service ignores a complaint with several recipients. SES then lists all recipients at the mail host that
  // reports the complaint, so nobody knows which of them complained.
  if (addresses.length !== 1) return []
  return [
    {
      ...aboutCopy(body),
      kind: 'complaint',
      address: addresses[0]!,
      status: null,
      detail: detailOf(`reported by SES ${type}`),
    },
  ]
}

/**
 * Returns the values that identify a sent copy of a message: the id in the relay's 250 reply, the Message-ID, and the
 * envelope sender.
 */
function aboutCopy(body: Fields) {
  const mail = fieldsOf(body.mail)
  const headers = listOf(mail.headers).map(fieldsOf)
  const headerOf = (name: string) =>
    textOf(headers.find((header) => textOf(header.name).toLowerCase() === name)?.value)
  const messageId = headerOf('message-id')
  const source = textOf(mail.source)
  return {
    from: source.replace(/\+[^@]*(?=@)/, ''),
    relayIds: [textOf(mail.messageId)].filter((id) => id !== ''),
    messageIds: messageId === '' ? [] : [messageId],
    returnPaths: isAddress(source) ? [source] : [],
  }
}
