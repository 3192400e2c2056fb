import { type Actor, writeAudit } from '../../account/audit.ts'
import { type Pool, transaction } from '../../db.ts'
import { withdrawHeld } from '../approval/heldMails.ts'
import { endUnsent, lockUnsent } from './unsentMails.ts'

/**
 * Describes the result of a request to cancel a mail. The result `before` means that somebody had already cancelled the
 * mail.
 */
export type CancelEnd = 'cancelled' | 'before' | 'not found' | 'too late'

/**
 * Cancels a scheduled mail, or withdraws a mail that is held for approval. The service never sends a mail after its
 * cancellation.
 */
export async function cancelMail(pool: Pool, actor: Actor, messageId: string): Promise<CancelEnd> {
  return transaction(pool, async (db) => {
    const unsent = await lockUnsent(db, actor.projectId, messageId)
    if (unsent === null) return 'not found'
    const { messageRow, status } = unsent
    if (status === 'cancelled') return 'before'
    if (status === 'held') return await withdrawHeld(db, actor, { messageRow, messageId })
    if (status !== 'scheduled') return 'too late'
    await endUnsent(db, messageRow, { status: 'cancelled', error: 'cancelled before its time' })
    await writeAudit(db, actor, { action: 'message.cancel', subject: messageId, outcome: 'ok' })
    return 'cancelled'
  })
}
