import { domainOf } from '../../../shared/mail/address.ts'
import type { RelayReport } from '../../../shared/mail/http/relayReport.ts'
import { type Envelope, requestId } from '../../../shared/mail/http/signedMail.ts'
import { traced } from '../../../shared/process/tracing.ts'
import { traceparent } from '../../../shared/process/workContext.ts'
import type { MailProvider } from '../../../sql/mail/inbound/inboundMails.ts'
import {
  type AcceptingParts,
  checkSpoolRoom,
  findInbox,
  keepMail,
  MESSAGE_MAX_BYTES,
  SmtpReply,
  TOO_LARGE,
  TOO_MUCH_IN_FLIGHT,
} from '../acceptance.ts'
import type { ConnectionLimits, OpenConnection } from '../connectionLimits.ts'
import type { Incoming, IncomingMails } from '../incomingMail.ts'
import { inboxSharer, type Sharer } from '../sharers.ts'
import type { SmtpMetrics } from '../smtpMetrics.ts'
import type { InboundKey } from './inboundKeys.ts'

export type HttpParts = AcceptingParts & {
  incoming: IncomingMails
  limits: ConnectionLimits
  metrics: SmtpMetrics
  mailDomain: string
}

/** Describes an HTTP request of a mail service, whose body may still arrive. */
export type ArrivingRequest = Pick<Request, 'url' | 'headers'> & {
  body: AsyncIterable<Uint8Array>
  /**
   * Counts the connection of an authentic HTTP request for the receiving inboxes, and no longer for the network of the
   * mail service.
   * @throws {SmtpReply} if each of these inboxes has too many connections.
   */
  countAs(sharers: readonly Sharer[]): void
  /**
   * Begins to store on disk the body of a mail service's HTTP request, because the adapter must read it as a whole. The
   * function never refuses a body of at most `alwaysBytes` for lack of space.
   */
  hold(options: { alwaysBytes: number }): Incoming
}

/**
 * Describes a mail that a mail service delivers over HTTP with an inbound secret (a key for mail over HTTP). Each
 * adapter turns an HTTP request of its mail service into such a mail.
 */
export type HandedMail = {
  key: InboundKey
  envelope: Envelope
  provider: MailProvider
  /**
   * Holds a UUID that identifies the HTTP request. A repeated identical request has the same UUID, so that the service
   * stores it only once.
   */
  sourceKey: string
  /** Holds the bytes of the message (RFC 5322). */
  content: AsyncIterable<Uint8Array>
  /**
   * Verifies the signature of the whole message before the service stores the message. @throws {HttpRefusal} for a
   * wrong signature.
   */
  check(bytes: Buffer): void
  /** Gives back the memory that a mail takes while the adapter of its mail service holds the whole mail. */
  release?: () => void
}

/** Describes a relay's delivery reports about copies of mails that this service sent. */
export type HandedReports = { key: InboundKey; reports: RelayReport[] }

const TOO_MANY_FOR_INBOX = '4.2.1 The inbox receives too many messages, try again later'

/** Lists the accepted and the refused recipients of a mail. */
export type Taken = { accepted: string[]; refused: { address: string; reason: string }[] }

/**
 * Accepts a mail over HTTP in the same way as the SMTP listener. The promise resolves when the mail is on disk in the
 * spool (the file of accepted mail). If one recipient cannot get the mail now, for example because the inbox is full,
 * the others still get it.
 * @param from holds the IP address of the mail service, the connection, and a signal that aborts with the connection.
 * @throws {SmtpReply} if this service can serve no recipient, or if the sender must try a recipient again later. In the
 * second case, the spool may already have stored the mail for the other recipients.
 */
export async function takeMail(
  parts: HttpParts,
  mail: HandedMail,
  from: { address: string; connection: OpenConnection; signal: AbortSignal },
): Promise<Taken> {
  checkSpoolRoom(parts)
  const { byInbox, accepted, refused, later } = withRoom(
    parts,
    from.connection,
    await findInboxes(parts, mail),
  )
  if (byInbox.size === 0) throw later ?? new SmtpReply(550, refused[0]!.reason)
  const isPaced = mail.release === undefined
  const incoming = parts.incoming.begin(byInbox.keys(), from.connection, { isPaced })
  try {
    let size = 0
    for await (const chunk of mail.content) {
      from.signal.throwIfAborted()
      size += chunk.length
      if (size > MESSAGE_MAX_BYTES) throw new SmtpReply(552, TOO_LARGE)
      if (!(await incoming.write(Buffer.from(chunk)))) throw new SmtpReply(452, TOO_MUCH_IN_FLIGHT)
    }
    const bytes = await incoming.bytes()
    mail.check(bytes)
    await traced(
      'POST /v0/inbound',
      { kind: 'server', parent: null, attributes: { 'purser.mail.bytes': bytes.length } },
      () =>
        keepMail(parts, {
          sourceKey: later === null ? mail.sourceKey : partKey(mail, byInbox.keys()),
          bytes,
          envelopeFrom: mail.envelope.from,
          inboxes: [...byInbox].map(([address, envelopeTo]) => ({ address, envelopeTo })),
          remoteIp: from.address,
          helo: '',
          receivedAt: new Date(),
          traceparent: traceparent(),
          provider: mail.provider,
        }),
    )
    parts.rates.count(null, byInbox.keys())
    parts.metrics.accepted()
    if (later !== null) throw later
    return { accepted, refused }
  } finally {
    await incoming.discard()
  }
}

/**
 * Returns the source key (the identity of a delivery) for some of the recipients of a mail. The sender may send the
 * same mail again for all recipients. That request has the key of the whole mail. The key for some recipients must
 * differ from it, because the service would otherwise ignore that request as a repetition.
 */
const partKey = ({ sourceKey }: HandedMail, inboxes: Iterable<string>): string =>
  requestId(sourceKey, [...inboxes].sort().join(' '))

/**
 * Counts the connection against the limits of the inboxes that receive a mail. An inbox that has too many connections
 * gets the mail later.
 */
function withRoom(
  { limits }: HttpParts,
  connection: OpenConnection,
  found: Awaited<ReturnType<typeof findInboxes>>,
): typeof found {
  const { byInbox, accepted, refused } = found
  const free = limits.countAs(connection, [...byInbox.keys()].map(inboxSharer))
  const names = new Set(free.map(({ name }) => name))
  const crowded = [...byInbox].filter(([inbox]) => !names.has(inboxSharer(inbox).name))
  if (crowded.length === 0) return found
  const addresses = new Set(crowded.map(([, address]) => address))
  return {
    byInbox: new Map([...byInbox].filter(([, address]) => !addresses.has(address))),
    accepted: accepted.filter((address) => !addresses.has(address)),
    refused,
    later: new SmtpReply(421, TOO_MANY_FOR_INBOX),
  }
}

async function findInboxes(parts: HttpParts, { key, envelope }: HandedMail) {
  const byInbox = new Map<string, string>()
  const accepted: string[] = []
  const refused: Taken['refused'] = []
  let later: SmtpReply | null = null
  for (const address of new Set(envelope.to)) {
    try {
      if (key.domain !== null && domainOf(address) !== key.domain) {
        throw new SmtpReply(550, `5.7.1 This key delivers only to ${key.domain}`)
      }
      const inbox = await findInbox(
        parts,
        {
          address,
          sender: envelope.from,
          mailDomain: key.domain ?? parts.mailDomain,
          network: null,
        },
        // The empty function counts no unknown recipient of a mail over HTTP, because the mail service delivers
        // everybody's mail. Otherwise a sender who guesses addresses could get the mail service blocked.
        () => {},
      )
      byInbox.set(inbox, address)
      accepted.push(address)
    } catch (error) {
      if (!(error instanceof SmtpReply)) throw error
      if (error.responseCode < 500) later = error
      else refused.push({ address, reason: error.message })
    }
  }
  return { byInbox, accepted, refused, later }
}
