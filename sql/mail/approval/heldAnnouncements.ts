import { APPROVERS } from '../../account/approvalLinks.ts'
import type { Approval } from '../../account/approvals.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'
import { lockUnsent } from '../outbound/unsentMails.ts'
import { tellOfHeld } from './heldMails.ts'

/**
 * Announces that a mail is held for approval, and stores the event and the webhook deliveries. A second call for the
 * same mail changes nothing.
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
    await tellOfHeld(db, held.messageRow, 'message.held')
    return true
  })
}

const LOST_AFTER = '60 seconds'
const LOST_BATCH = 100

/**
 * Queues the jobs that announce or end waiting approval requests, if these jobs are missing or have failed for good.
 * The job that announces a mail fails for good if, for example, the object store lacks the mail's content for days.
 * @returns the number of jobs that the function queued again.
 */
export function requeueLostApprovals(pool: Pool): Promise<number> {
  return transaction(pool, async (db) => {
    const { rows: waiting } = await db.query<{ id: string }>(
      `select a.id from approvals a join projects p on p.id = a.project_id
       where a.state = 'waiting' and a.requested_at < clock_timestamp() - interval '${LOST_AFTER}'
         and p.deleted_at is null and (${hasNoJob("'expire_approval:' || a.id")}
           or a.kind = 'mail' and a.announced_at is null and ${hasNoJob("'announce_approval:' || a.id")})
       order by a.requested_at limit ${LOST_BATCH} for no key update of a skip locked`,
    )
    // The code looks for the jobs once more, because another process may have queued them since the first statement
    // began. A second job would send the notices twice.
    const { rows: lost } = await db.query<{
      task: 'announce_approval' | 'expire_approval'
      id: string
      run_at: Date | null
    }>(
      `select d.task, a.id, d.run_at from approvals a cross join lateral (values
         ('announce_approval', null::timestamptz, a.kind = 'mail' and a.announced_at is null),
         ('expire_approval', a.expires_at, true)) d (task, run_at, is_due)
       where a.id = any ($1) and d.is_due and ${hasNoJob("d.task || ':' || a.id")}`,
      [waiting.map(({ id }) => id)],
    )
    for (const { task, id, run_at: runAt } of lost) {
      const payload = { approvalId: id }
      const key = `${task}:${id}`
      await addJob(db, { task, payload, key, ...(runAt === null ? {} : { runAt }) })
    }
    return lost.length
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

/** Records that an email address needs no further notification about an approval request. */
export async function recordNotified(
  db: Queryable,
  approvalId: string,
  address: string,
): Promise<void> {
  await db.query(
    `update approval_links set notified_at = clock_timestamp()
     where approval_id = $1 and address = $2 and notified_at is null`,
    [approvalId, address],
  )
}

/**
 * Records that the service has tried to send the notifications about an approval request.
 * @param againInMs is the number of milliseconds until the next attempt to notify the other email addresses. Null means
 * that the service makes no further attempt to notify anybody.
 */
export async function recordNotice(
  pool: Pool,
  approvalId: string,
  againInMs: number | null,
): Promise<void> {
  await transaction(pool, async (db) => {
    await db.query(
      `update approvals set notice_attempts = notice_attempts + 1,
         notified_at = case when $2 then clock_timestamp() end
       where id = $1`,
      [approvalId, againInMs === null],
    )
    if (againInMs !== null) await queueAnnouncement(db, approvalId, againInMs)
  })
}

/**
 * Queues the announcement of an approval request again for a later time, because too many notices of the same project
 * or to the smarthost are already in progress.
 */
export const queueAnnouncement = (db: Queryable, approvalId: string, inMs: number): Promise<void> =>
  addJob(db, {
    task: 'announce_approval',
    payload: { approvalId },
    key: `announce_approval:${approvalId}`,
    inMs,
  })
