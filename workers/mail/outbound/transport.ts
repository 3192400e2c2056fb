import type { MailRoute } from '../../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../../sql/mail/outbound/mailAttempts.ts'

/** The envelope of one copy: each recipient has an envelope sender of its own. */
export type Envelope = { from: string; to: string }

/** A message on its way to some recipients. */
export type OutgoingMail = { envelopes: readonly Envelope[]; raw: Buffer }

/** Takes outcomes as they become known. The next copy may wait for it. */
export type Report = (outcomes: RecipientOutcome[]) => Promise<void>

/** The recipients of one `send`, and the lane they share with other mail. Null: the shared lane (smarthost mail). */
export type Consignment = { lane: string | null; to: string[] }

/** Sends messages to remote hosts. */
export type Transport = {
  route: MailRoute
  /** Splits recipients into consignments, one per `send`. */
  split(addresses: string[]): Consignment[]
  /**
   * Sends each copy in a transaction of its own, and reports each recipient once. A remote failure is an outcome, never an
   * exception.
   */
  send(mail: OutgoingMail, report: Report): Promise<void>
  /** Looks at the start whether mail can be handed over, and logs if not. */
  check(): Promise<void>
  close(): void
}
