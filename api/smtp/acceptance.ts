import type { Logger } from 'pino'
import { domainOf } from '../../shared/mail/address.ts'
import type { Outage } from '../../shared/process/outage.ts'
import type { AddressBook } from './addressBook.ts'
import type { BlockedSenders } from './blockedSenders.ts'
import type { FullInboxes } from './fullInboxes.ts'
import type { SenderRates } from './senderRates.ts'
import type { Mover } from './spool/mover.ts'
import { type NewSpooledMail, type Spool, SpoolFull, sizeOf } from './spool/spool.ts'

/** Sets the maximum number of bytes of an accepted message (SIZE in RFC 1870). */
export const MESSAGE_MAX_BYTES = 35 * 1024 * 1024
export const TOO_LARGE = `5.3.4 Message exceeds the limit of ${MESSAGE_MAX_BYTES} bytes`
export const TOO_MANY_CONNECTIONS = '4.7.0 Too many connections from your address'
export const TOO_MUCH_IN_FLIGHT = '4.3.1 Too much mail in flight, try again later'

/**
 * Makes the library smtp-server send an SMTP reply other than 250. The reply consists of `responseCode` and the message
 * of the error.
 */
export class SmtpReply extends Error {
  readonly responseCode: number
  constructor(responseCode: number, message: string) {
    super(message)
    this.responseCode = responseCode
  }
}

/** Holds the parts of the service that decide whether to accept a mail, both over SMTP and over HTTP. */
export type AcceptingParts = {
  spool: Spool
  mover: Mover
  addressBook: AddressBook
  blockedSenders: BlockedSenders
  rates: SenderRates
  fullInboxes: FullInboxes
  /** Logs when the spool (the file of accepted mail) can no longer store mail, and when it can again. */
  spoolOutage: Outage
  log: Logger
}

/**
 * Checks whether the network of a sender may send another mail now. @throws {SmtpReply} if the network may send no mail
 * now.
 */
export function admitSender(parts: AcceptingParts, remoteAddress: string): void {
  if (!parts.rates.takesFrom(remoteAddress)) {
    throw new SmtpReply(450, '4.7.0 Too many messages from your address, try again later')
  }
  checkSpoolRoom(parts)
}

/**
 * Checks whether the spool (the file of accepted mail) can store another mail. @throws {SmtpReply} if the disk is full.
 */
export function checkSpoolRoom({ spool }: AcceptingParts): void {
  if (!spool.hasRoom()) throw new SmtpReply(452, '4.3.1 Insufficient system storage')
}

/**
 * Returns the inbox of a recipient if the inbox currently accepts mail from this sender.
 * @param network is the IP address of the SMTP client, or `null` for mail over HTTP.
 * @param onUnknown is called when the recipient does not exist.
 * @throws {SmtpReply} if the inbox does not accept the mail.
 */
export async function findInbox(
  parts: AcceptingParts,
  {
    address,
    sender,
    mailDomain,
    network,
  }: { address: string; sender: string; mailDomain: string; network: string | null },
  onUnknown: () => void,
): Promise<string> {
  const recipient = await parts.addressBook.find(address)
  if (recipient === 'unknown') {
    onUnknown()
    // A mail domain of a platform may also have inboxes. An unknown recipient in such a domain gets the same SMTP reply
    // as a recipient in a foreign domain.
    if (domainOf(address) !== mailDomain) throw new SmtpReply(550, '5.7.1 Relaying denied')
    throw new SmtpReply(550, '5.1.1 No such inbox')
  }
  if (recipient === 'undecided') throw new SmtpReply(451, '4.3.0 Address cannot be checked now')
  if (parts.blockedSenders.has(recipient.inbox, sender)) {
    throw new SmtpReply(550, '5.7.1 The recipient takes no mail from this sender')
  }
  if (parts.fullInboxes.has(recipient.inbox)) {
    throw new SmtpReply(452, '4.2.2 The inbox is full')
  }
  if (!parts.rates.takesFor(recipient.inbox, network)) {
    throw new SmtpReply(450, '4.2.1 The inbox receives too many messages, try again later')
  }
  return recipient.inbox
}

/**
 * Stores a mail in the spool (the file of accepted mail). The promise resolves when the mail is on disk. @throws
 * {SmtpReply} if the spool cannot store the mail.
 */
export async function keepMail(parts: AcceptingParts, mail: NewSpooledMail): Promise<void> {
  try {
    await parts.spool.accept(mail)
  } catch (error) {
    const { message } = error as Error
    parts.spoolOutage.missed((fields, text) => parts.log.error(fields, text), message)
    const isFull = error instanceof SpoolFull
    throw new SmtpReply(
      452,
      isFull
        ? '4.3.1 Insufficient system storage'
        : '4.3.1 Message could not be stored, try again later',
    )
  }
  parts.spoolOutage.answered()
  parts.mover.nudge(sizeOf(mail.bytes))
}
