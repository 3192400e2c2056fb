import type { Queryable } from '../../db.ts'

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
 * Changes how mail of a project leaves, in the transaction of its other changes. On the way to approve-new, and only
 * then, the recipients of earlier mail that nobody had to approve become known. An approval has said itself whom it
 * makes known: its mail counts no second time.
 */
export async function updateSendPolicy(
  db: Queryable,
  projectId: string,
  { sendPolicy, approverEmail, approvalHours }: PolicyChange,
): Promise<void> {
  if (sendPolicy === undefined && approverEmail === undefined && approvalHours === undefined) return
  const { rows } = await db.query<{ before: SendPolicyName }>(
    `with before as (select id, send_policy from projects where id = $1 for update)
     update projects p set send_policy = coalesce($2, p.send_policy),
       approval_hours = coalesce($3, p.approval_hours),
       approver_email = case when $4 then $5 else p.approver_email end
     from before where p.id = before.id returning before.send_policy as before`,
    [
      projectId,
      sendPolicy ?? null,
      approvalHours ?? null,
      approverEmail !== undefined,
      approverEmail ?? null,
    ],
  )
  if (sendPolicy !== 'approve-new' || rows[0]?.before === sendPolicy) return
  await db.query(
    `insert into known_recipients (project_id, recipient)
     select distinct $1, lower(r.address)
     from messages m join outbound_mails o on o.message_row = m.row join outbound_recipients r on r.message_row = m.row
     where m.project_id = $1 and m.direction = 'sent' and o.approved_hash is null and r.state in ('sent', 'bounced')
     order by 2 on conflict do nothing`,
    [projectId],
  )
}
