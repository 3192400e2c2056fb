/**
 * Reads messages of Amazon SNS, and checks their signatures with a certificate of Amazon.
 * https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html
 */
import { verify, X509Certificate } from 'node:crypto'
import { SignedMailError } from './signedMail.ts'

const TYPES = ['Notification', 'SubscriptionConfirmation', 'UnsubscribeConfirmation'] as const

export type SnsMessage = {
  type: (typeof TYPES)[number]
  messageId: string
  topicArn: string
  message: string
  signatureVersion: '1' | '2'
  signature: string
  signingCertUrl: string
  /** Holds the URL that confirms a subscription. In all other messages, the URL is an empty text. */
  subscribeUrl: string
  /** Holds the text that SNS has signed. */
  signedText: string
}

/**
 * Lists the signed fields of an SNS notification. CONFIRMATION_FIELDS lists the signed fields of a subscription
 * confirmation, which has no subject, but a token and a URL.
 */
const NOTIFICATION_FIELDS = ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']
const CONFIRMATION_FIELDS = [
  'Message',
  'MessageId',
  'SubscribeURL',
  'Timestamp',
  'Token',
  'TopicArn',
  'Type',
]
const FIELD_MAX_CHARS = 2_000
const CERTIFICATE_NAME = 'sns.amazonaws.com'

/**
 * Reads the JSON of an SNS message. The function does not prove the sender of the SNS message. @throws
 * {SignedMailError} if the JSON is malformed, or lacks a field that the service needs.
 */
export function readSns(json: string): SnsMessage {
  let body: Record<string, unknown>
  try {
    body = Object(JSON.parse(json))
  } catch {
    throw new SignedMailError(400, 'The body must be valid JSON')
  }
  const text = (name: string, maxChars = FIELD_MAX_CHARS): string => {
    const value = body[name]
    if (typeof value !== 'string' || value.length > maxChars) {
      throw new SignedMailError(400, `${name}: must be a text of at most ${maxChars} characters`)
    }
    return value
  }
  const type = TYPES.find((known) => known === body.Type)
  if (type === undefined) throw new SignedMailError(400, `Type: must be ${TYPES.join(', ')}`)
  const { SignatureVersion: signatureVersion } = body
  if (signatureVersion !== '1' && signatureVersion !== '2') {
    throw new SignedMailError(400, 'SignatureVersion: must be 1 or 2')
  }
  const isNotification = type === 'Notification'
  const fields = isNotification
    ? NOTIFICATION_FIELDS.filter((name) => name !== 'Subject' || body.Subject !== undefined)
    : CONFIRMATION_FIELDS
  const fieldOf = (name: string) => (name === 'Message' ? text(name, json.length) : text(name))
  return {
    type,
    messageId: text('MessageId'),
    topicArn: text('TopicArn'),
    message: text('Message', json.length),
    signatureVersion,
    signature: text('Signature'),
    signingCertUrl: text('SigningCertURL'),
    subscribeUrl: isNotification ? '' : text('SubscribeURL'),
    signedText: fields.map((name) => `${name}\n${fieldOf(name)}\n`).join(''),
  }
}

/** Tells whether a URL belongs to Amazon SNS in the given region. */
export function isSnsUrl(text: string, region: string): boolean {
  if (text.length > FIELD_MAX_CHARS || !URL.canParse(text)) return false
  const { protocol, host, username, password } = new URL(text)
  return (
    protocol === 'https:' &&
    [`sns.${region}.amazonaws.com`, `sns.${region}.amazonaws.com.cn`].includes(host) &&
    `${username}${password}` === ''
  )
}

/** Tells whether a URL may be the URL of an SNS certificate. */
export const isCertificateUrl = (text: string, region: string): boolean =>
  isSnsUrl(text, region) && /^\/[\w-]{1,200}\.pem$/.test(new URL(text).pathname)

/**
 * Checks the signature of an SNS message. The SNS message itself names the URL of the signer's certificate.
 * @param pem is the certificate of the SNS message's signer. TLS has proven the host that served the certificate.
 * @throws {SignedMailError} for an unusable certificate or a wrong signature.
 */
export function proveSns(message: SnsMessage, pem: string, nowMs: number): void {
  let certificate: X509Certificate
  try {
    certificate = new X509Certificate(pem)
  } catch {
    throw new SignedMailError(401, 'SigningCertURL: leads to no certificate')
  }
  const isOurs =
    certificate.checkHost(CERTIFICATE_NAME) !== undefined &&
    certificate.publicKey.asymmetricKeyType === 'rsa'
  const isTimely =
    Date.parse(certificate.validFrom) <= nowMs && nowMs <= Date.parse(certificate.validTo)
  if (!isOurs || !isTimely) {
    throw new SignedMailError(
      401,
      `SigningCertURL: must lead to a valid certificate of ${CERTIFICATE_NAME}`,
    )
  }
  const digest = message.signatureVersion === '2' ? 'RSA-SHA256' : 'RSA-SHA1'
  const signature = Buffer.from(message.signature, 'base64')
  if (!verify(digest, Buffer.from(message.signedText), certificate.publicKey, signature)) {
    throw new SignedMailError(401, 'Signature: does not fit the message')
  }
}
