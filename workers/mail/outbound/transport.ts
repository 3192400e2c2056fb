import type { MailRoute } from '../../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'

/**
 * Limits how long the service waits for the reply to one SMTP command. RFC 5321 §4.5.3.2 allows a wait of five minutes
 * for most commands, and of ten minutes for the reply to the message. If the service closed the connection earlier, a
 * slow server could still deliver the message, and the service would send it again.
 */
export const REPLY_TIMEOUT_MS = 10 * 60_000

/**
 * Describes the SMTP envelope of one copy of a message. Each recipient gets a copy of the message with a separate
 * envelope sender.
 */
export type Envelope = { from: string; to: string }

/** Describes a message that is about to be sent to some recipients. */
export type OutgoingMail = { envelopes: readonly Envelope[]; raw: Buffer }

/**
 * Describes a function that receives the delivery outcomes of recipients as soon as the outcomes are known. The
 * transport may wait for this function before it begins the SMTP transaction of the next copy.
 */
export type Report = (outcomes: RecipientOutcome[]) => Promise<void>

/**
 * Holds the recipients of one call of `send`, and the name of the lane (the queue of one destination) in which the
 * service sends their mail. If `lane` is `null`, the mail goes through the lane of the smarthost, which all mails
 * share.
 */
export type Consignment = { lane: string | null; to: string[] }

/** Sends messages to remote mail hosts. */
export type Transport = {
  route: MailRoute
  /**
   * Splits the recipients of a mail into consignments (groups of recipients that the service serves together). Each
   * call of `send` takes one consignment.
   */
  split(addresses: string[]): Consignment[]
  /**
   * Sends each copy of a mail in a separate SMTP transaction, and reports the outcome for each recipient once. A
   * failure of the remote mail host is reported as an outcome, and never as an exception.
   */
  send(mail: OutgoingMail, report: Report): Promise<void>
  /**
   * Tells whether the MX records of a domain lead to this service. With a smarthost, the answer is always false,
   * because the smarthost looks up the MX records.
   */
  leadsHere(domain: string): Promise<boolean>
  /** Checks at the start of the process whether the smarthost accepts mail, and logs a failure. */
  check(): Promise<void>
  close(): void
}
