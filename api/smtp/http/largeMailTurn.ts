import { type FairTurns, NoTurnError } from '../../../shared/fair/fairTurns.ts'
import { SmtpReply } from '../acceptance.ts'

/**
 * Sets how many milliseconds a request with a large mail waits for other large mails. After a 503, the mail service
 * sends the mail again.
 */
const TURN_MAX_MS = 30_000

/**
 * Waits until the service may read a large mail, because large mails take turns. @throws {SmtpReply} if the wait takes
 * too long.
 */
export async function enterLargeMail(turns: FairTurns, sharer: string): Promise<() => void> {
  try {
    return await turns.enter(sharer, TURN_MAX_MS)
  } catch (error) {
    if (!(error instanceof NoTurnError)) throw error
    throw new SmtpReply(451, '4.3.2 Too many large mails arrive at once')
  }
}
