/**
 * Reads the webhooks of Postmark. Postmark does not sign its webhooks. Therefore a webhook counts as authentic if its
 * URL has the right password and the right secret path, which both come from a secret of the service.
 * https://postmarkapp.com/developer/webhooks/inbound-webhook
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { isEnvelopeAddress, parseAnyAddress } from '../address.ts'
import { type AuthenticationWord, authenticationWord } from '../parse/authentication.ts'
import { detailOf, type RelayReport, relayIdOfWord, withoutNul } from './relayReport.ts'
import { type Envelope, SignedMailError } from './signedMail.ts'

const USER = 'purser'
const PATH = '/v0/inbound/postmark/'
/**
 * Matches the path of a Postmark webhook. The path contains the key id in base64url, and a part that the code derives
 * from the secret.
 */
const SECRET_PATH = /^\/v0\/inbound\/postmark\/([\w-]{1,400})\/([0-9a-f]{32})$/

const derived = (secret: Uint8Array, keyId: string, use: string) =>
  createHmac('sha256', secret).update(`purser postmark ${use} ${keyId}`).digest('hex').slice(0, 32)

/** Returns the webhook URL for the settings at Postmark. The webhook URL contains the password. */
export function postmarkAddress(baseUrl: string, keyId: string, secret: Uint8Array): string {
  const url = new URL(baseUrl)
  url.username = USER
  url.password = derived(secret, keyId, 'password')
  url.pathname = `${PATH}${Buffer.from(keyId).toString('base64url')}/${derived(secret, keyId, 'path')}`
  return url.href
}

/** Returns the key id in the path of a Postmark webhook. @returns null if the path is no Postmark path. */
export function postmarkKeyId(pathname: string): string | null {
  const id = SECRET_PATH.exec(pathname)?.[1]
  return id === undefined ? null : Buffer.from(id, 'base64url').toString('utf8')
}

/**
 * Checks that the path and the password of a Postmark webhook come from one of the key's secrets. @throws
 * {SignedMailError} if the path or the password is wrong.
 */
export function provePostmark(
  request: { pathname: string; authorization: string },
  keyId: string,
  secrets: readonly Uint8Array[],
): void {
  const given = Buffer.from(request.authorization.slice(0, 500))
  const isRight = secrets.some((secret) => {
    const login = `${USER}:${derived(secret, keyId, 'password')}`
    const wanted = Buffer.from(`Basic ${Buffer.from(login).toString('base64')}`)
    const path = Buffer.from(derived(secret, keyId, 'path'))
    const givenPath = Buffer.from(SECRET_PATH.exec(request.pathname)?.[2] ?? '')
    return (
      given.length === wanted.length &&
      timingSafeEqual(given, wanted) &&
      givenPath.length === path.length &&
      timingSafeEqual(givenPath, path)
    )
  })
  if (!isRight) throw new SignedMailError(401, 'Authorization: does not fit the key')
}

/**
 * Describes the content of a Postmark webhook: a mail, a report about a sent copy, or an event that this service does
 * not use.
 */
export type PostmarkNews =
  | { kind: 'mail'; envelope: Envelope; spf: AuthenticationWord | null; bytes: Buffer }
  | { kind: 'report'; report: RelayReport }
  | { kind: 'other' }

/**
 * Reads the JSON of a Postmark webhook for a received mail, a bounce or a spam complaint.
 * @throws {SignedMailError} if the JSON is malformed, or lacks a field that the service needs.
 */
export function readPostmark(json: string): PostmarkNews {
  let body: Record<string, unknown>
  try {
    body = Object(JSON.parse(json))
  } catch {
    throw new SignedMailError(400, 'The body must be valid JSON')
  }
  const { RecordType: kind } = body
  if (kind === undefined) return { kind: 'mail', ...mailOf(body) }
  if (kind === 'Bounce' && body.Type !== 'SpamComplaint') {
    // Only these two bounce types mean that the recipient's address does not exist. The service ignores Postmark's
    // other types, which are delays, automatic replies and blocks.
    if (body.Type !== 'HardBounce' && body.Type !== 'BadEmailAddress') return { kind: 'other' }
    return { kind: 'report', report: reportOf(body, 'bounce') }
  }
  if (kind === 'Bounce' || kind === 'SpamComplaint') {
    return { kind: 'report', report: reportOf(body, 'complaint') }
  }
  return { kind: 'other' }
}

/** Reads the report of a bounce: https://postmarkapp.com/developer/webhooks/bounce-webhook */
function reportOf(body: Record<string, unknown>, kind: RelayReport['kind']): RelayReport {
  const { Email: address, MessageID: id } = body
  const text = (name: string) => (typeof body[name] === 'string' ? withoutNul(body[name]) : '')
  if (typeof address !== 'string' || parseAnyAddress(address) === null) {
    throw new SignedMailError(400, 'Email: must be an address')
  }
  if (typeof id !== 'string' || id.length > ID_MAX_CHARS) {
    throw new SignedMailError(
      400,
      `MessageID: must be a text of at most ${ID_MAX_CHARS} characters`,
    )
  }
  const details = text('Details') === '' ? text('Description') : text('Details')
  const returned = text('Content').slice(0, CONTENT_MAX_CHARS)
  return {
    kind,
    address,
    from: text('From').slice(0, ID_MAX_CHARS),
    status: kind === 'bounce' ? '5.1.1' : null,
    detail: detailOf(details),
    relayIds: [relayIdOfWord(withoutNul(id))],
    messageIds: fieldsOf(returned, MESSAGE_ID),
    returnPaths: fieldsOf(returned, RETURN_PATH).filter((path) => parseAnyAddress(path) !== null),
  }
}

const ID_MAX_CHARS = 320
const CONTENT_MAX_CHARS = 64 * 1024
const FIELDS_MAX = 10
const MESSAGE_ID = /^Message-ID:[ \t]*(<[^<>\r\n]{1,998}>)/gim
const RETURN_PATH = /^Return-Path:[ \t]*<?([^<>\s]{1,320})>?/gim

const fieldsOf = (text: string, field: RegExp): string[] =>
  [...text.matchAll(field)].map(([, value]) => value!).slice(0, FIELDS_MAX)

/**
 * Reads the mail in a Postmark webhook. The setting "Include raw email content in JSON payload" must be on at Postmark.
 */
function mailOf(body: Record<string, unknown>) {
  const { RawEmail: raw, OriginalRecipient: to } = body
  if (typeof raw !== 'string' || raw === '') {
    throw new SignedMailError(
      400,
      'RawEmail: must be set; turn on "Include raw email content in JSON payload"',
    )
  }
  if (typeof to !== 'string' || !isEnvelopeAddress(to)) {
    throw new SignedMailError(400, 'OriginalRecipient: must be an address')
  }
  const headers = headersOf(body)
  const from = /^<?([^<>]*)>?$/.exec(headers.get('return-path') ?? '')?.[1]?.trim() ?? ''
  return {
    envelope: { from: isEnvelopeAddress(from) ? from : '', to: [to] },
    spf: spfWord(headers.get('received-spf')),
    bytes: Buffer.from(raw, 'utf8'),
  }
}

/**
 * Reads the header fields in the JSON of a Postmark webhook. Of several fields with the same name, the first counts.
 */
function headersOf({ Headers: headers }: Record<string, unknown>): Map<string, string> {
  const found = new Map<string, string>()
  for (const header of Array.isArray(headers) ? headers : []) {
    const { Name: name, Value: value } = Object(header)
    if (typeof name !== 'string' || typeof value !== 'string') continue
    if (!found.has(name.toLowerCase())) found.set(name.toLowerCase(), value)
  }
  return found
}

/**
 * Reads the verdict at the beginning of a Received-SPF header, such as `Pass (sender SPF authorized) …` (RFC 7208
 * §9.1).
 */
function spfWord(header: string | undefined): AuthenticationWord | null {
  const word = header === undefined ? undefined : /^[a-z]{1,20}/i.exec(header.trim())?.[0]
  return word === undefined ? null : authenticationWord(word.toLowerCase())
}
