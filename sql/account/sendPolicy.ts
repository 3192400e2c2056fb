import type { Queryable } from '../db.ts'

/** free: mail leaves at once. approve: each waits for the owner. approve-new: the first to a recipient does. */
export const SEND_POLICIES = ['free', 'approve', 'approve-new'] as const
export type SendPolicyName = (typeof SEND_POLICIES)[number]

export type PolicyChange = {
  sendPolicy?: SendPolicyName
  /** Null: nobody is notified. */
  approverEmail?: string | null
  approvalHours?: number
}

/**
 * Changes how mail of a project leaves, in the transaction of its other changes. On the way to approve-new the
 * recipients of all earlier mail become known.
 */
export async function updateSendPolicy(
  db: Queryable,
  projectId: string,
  { sendPolicy, approverEmail, approvalHours }: PolicyChange,
): Promise<void> {
  if (sendPolicy === undefined && approverEmail === undefined && approvalHours === undefined) return
  await db.query(
    `update projects set send_policy = coalesce($2, send_policy), approval_hours = coalesce($3, approval_hours),
       approver_email = case when $4 then $5 else approver_email end
     where id = $1`,
    [
      projectId,
      sendPolicy ?? null,
      approvalHours ?? null,
      approverEmail !== undefined,
      approverEmail ?? null,
    ],
  )
  if (sendPolicy !== 'approve-new') return
  await db.query(
    `insert into known_recipients (project_id, recipient)
     select distinct $1, lower(r.address) from messages m join outbound_recipients r on r.message_row = m.row
     where m.project_id = $1 and m.direction = 'sent' and r.state in ('sent', 'bounced')
     order by 2 on conflict do nothing`,
    [projectId],
  )
}
