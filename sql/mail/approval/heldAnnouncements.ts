import { APPROVERS } from '../../account/approvalLinks.ts'
import type { Approval } from '../../account/approvals.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob } from '../../queue/jobs.ts'
import { lockUnsent } from '../outbound/unsentMails.ts'
import { tellOfHeld } from './heldMails.ts'

/**
 * Announces that a mail is held for approval. The function makes the announcement only once. The function stores the
 * event and the webhook deliveries. The function also queues the job that ends the approval request at its expiry.
 * @returns false if the held mail no longer waits for a decision.
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

/** Describes the notifications about an approval request that the service must still send by mail. */
export type Notice = {
  /**
   * Lists the email addresses that have not received a notification about the approval request yet. The email addresses
   * belong to the approver and the owners of the project.
   */
  addresses: string[]
  projectName: string
  attempts: number
  requestedAt: Date
}

/**
 * Returns the notification about a waiting approval request, with the email addresses that still need the notification.
 * @returns null if nobody still needs a notification about the approval request.
 */
export async function findNotice(db: Queryable, approvalId: string): Promise<Notice | null> {
  const { rows } = await db.query<Notice>(
    `select p.name as "projectName", a.notice_attempts as attempts, a.requested_at as "requestedAt",
       array(select address from (${APPROVERS}) told
             where not exists (select from approval_links l
                               where l.approval_id = a.id and l.address = told.address and l.notified_at is not null)
             order by address) as addresses
     from approvals a join projects p on p.id = a.project_id
     where a.id = $1 and a.state = 'waiting' and a.notified_at is null and p.deleted_at is null`,
    [approvalId],
  )
  return rows[0] === undefined || rows[0].addresses.length === 0 ? null : rows[0]
}

/**
 * Records that the service has tried to send the notifications about an approval request.
 * @param done lists the email addresses that need no further attempt, because their notification was sent or can never
 * be sent.
 * @param again is the time of the next attempt to notify the other email addresses. Null means that the service makes
 * no further attempt to notify anybody.
 */
export async function recordNotice(
  pool: Pool,
  approvalId: string,
  { done, again }: { done: readonly string[]; again: Date | null },
): Promise<void> {
  await transaction(pool, async (db) => {
    await db.query(
      `update approval_links set notified_at = clock_timestamp()
       where approval_id = $1 and address = any ($2) and notified_at is null`,
      [approvalId, done],
    )
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
