import type { MailRoute } from '../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../sql/mail/mailAttempts.ts'

/** Bytes on their way to some recipients. */
export type OutgoingMail = { from: string; to: readonly string[]; raw: Buffer }

/** Recipients that are written to together, and the lane they share with others; null where all mail goes one way. */
export type Consignment = { lane: string | null; to: string[] }

/** Hands messages over to the outside. */
export type Transport = {
  route: MailRoute
  /** Parts recipients into those that one `send` takes. */
  split(addresses: string[]): Consignment[]
  /** Sends the bytes to these recipients; a remote failure is an outcome, never an exception. */
  send(mail: OutgoingMail): Promise<RecipientOutcome[]>
  close(): void
}
