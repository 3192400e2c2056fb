import type { MailRoute } from '../../shared/mail/mailRetry.ts'
import type { RecipientOutcome } from '../../sql/mail/mailAttempts.ts'

/** A message on its way to some recipients. */
export type OutgoingMail = { from: string; to: readonly string[]; raw: Buffer }

/** The recipients of one `send`, and the lane they share with other mail. Null: the shared lane (smarthost mail). */
export type Consignment = { lane: string | null; to: string[] }

/** Sends messages to remote hosts. */
export type Transport = {
  route: MailRoute
  /** Splits recipients into consignments, one per `send`. */
  split(addresses: string[]): Consignment[]
  /** Sends the bytes to these recipients; a remote failure is an outcome, never an exception. */
  send(mail: OutgoingMail): Promise<RecipientOutcome[]>
  close(): void
}
