import type { MailRoute } from '../../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'

/** Describes the SMTP envelope of one copy. Each recipient has a separate envelope sender. */
export type Envelope = { from: string; to: string }

/** Describes a message that is about to be sent to some recipients. */
export type OutgoingMail = { envelopes: readonly Envelope[]; raw: Buffer }

/**
 * Receives the delivery outcome of recipients as soon as the outcome is known. The SMTP transaction of the next copy
 * may wait until this function returns.
 */
export type Report = (outcomes: RecipientOutcome[]) => Promise<void>

/**
 * Holds the recipients of one call of `send`, and the name of the lane in which their mail is sent. A `lane` of `null`
 * means the shared lane for smarthost mail.
 */
export type Consignment = { lane: string | null; to: string[] }

/** Sends messages to remote hosts. */
export type Transport = {
  route: MailRoute
  /** Splits the recipients of a mail into consignments. Each call of `send` takes one consignment. */
  split(addresses: string[]): Consignment[]
  /**
   * Sends each copy in a separate SMTP transaction, and reports each recipient once. A remote failure is an outcome,
   * and never an exception.
   */
  send(mail: OutgoingMail, report: Report): Promise<void>
  /** Checks at the start of the process whether the smarthost accepts mail, and logs a failure. */
  check(): Promise<void>
  close(): void
}
