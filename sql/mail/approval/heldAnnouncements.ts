import type { Approval } from '../../account/approvals.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'
import { lockUnsent } from '../outbound/unsentMails.ts'
import { tellOfHeld } from './heldMails.ts'

/**
 * Announces a held mail once: the event, its webhooks, and the job that ends the request in time.
 * @returns false: it was decided meanwhile.
 */
export async function announceHeld(pool: Pool, approval: Approval): Promise<boolean> {
  return transaction(pool, async (db) => {
    const held = await lockUnsent(db, approval.projectId, approval.subject)
    if (held?.status !== 'held') return false
    const { rowCount } = await db.query(
      `update approvals set announced_at = clock_timestamp()
       where id = $1 and state = 'waiting' and announced_at is null`,
      [approval.id],
    )
    if (rowCount === 0) return true
    await addJob(db, {
      task: 'expire_approval',
      payload: { approvalId: approval.id },
      key: `expire_approval:${approval.id}`,
      runAt: approval.expiresAt,
    })
    await tellOfHeld(db, held.messageRow, 'message.held')
    return true
  })
}

/** The notification of a request that is to be mailed. */
export type Notice = { address: string; projectName: string; attempts: number; requestedAt: Date }

/** The notification of a waiting request; null: nobody is to be told, or the mail is done. */
export async function findNotice(db: Queryable, approvalId: string): Promise<Notice | null> {
  const { rows } = await db.query<Notice>(
    `select p.approver_email as address, p.name as "projectName", a.notice_attempts as attempts,
       a.requested_at as "requestedAt"
     from approvals a join projects p on p.id = a.project_id
     where a.id = $1 and a.state = 'waiting' and a.notified_at is null and p.approver_email is not null
       and p.deleted_at is null`,
    [approvalId],
  )
  return rows[0] ?? null
}

/** Records an attempt of the notification. @param again the next attempt; null: it is done. */
export async function recordNotice(
  pool: Pool,
  approvalId: string,
  again: Date | null,
): Promise<void> {
  await transaction(pool, async (db) => {
    await db.query(
      `update approvals set notice_attempts = notice_attempts + 1,
         notified_at = case when $2 then clock_timestamp() end
       where id = $1`,
      [approvalId, again === null],
    )
    if (again === null) return
    await addJob(db, {
      task: 'announce_approval',
      payload: { approvalId },
      key: `announce_approval:${approvalId}`,
      runAt: again,
    })
  })
}
