import type { Queryable } from '../../db.ts'
import { inBatches } from '../../inBatches.ts'

/**
 * Lists the send policies of a project. With `free`, the service sends mail at once. With `approve`, each mail waits
 * for the owner's approval. With `approve-new`, only the first mail to a recipient waits.
 */
export const SEND_POLICIES = ['free', 'approve', 'approve-new'] as const
export type SendPolicyName = (typeof SEND_POLICIES)[number]

export type PolicyChange = {
  sendPolicy?: SendPolicyName
  /**
   * Holds the owner's email address for notifications about mail that waits for approval. Null means that the service
   * notifies nobody about waiting mail.
   */
  approverEmail?: string | null
  approvalHours?: number
}

/**
 * Changes the send policy of a project, in the same transaction as other changes of the project. After a change to
 * `approve-new`, a recipient counts as known if the project has already sent it mail without an approval. Mail with an
 * approval does not count here, because the owner's approval has already decided whether the recipient becomes known.
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
  await learnRecipients(db, projectId)
}

/** Limits how many known recipients one SQL statement stores. */
const BATCH = 1_000

/** Stores the recipients to whom a project has sent mail without an approval as known recipients. */
async function learnRecipients(db: Queryable, projectId: string): Promise<void> {
  // Other transactions also store known recipients in this order, so that two transactions never deadlock.
  const batches = inBatches<{ address: string }>(db, {
    text: `
      select distinct lower(r.address) as address
      from messages m join outbound_mails o on o.message_row = m.row join outbound_recipients r on r.message_row = m.row
      where m.project_id = $1 and m.direction = 'sent' and o.approved_hash is null and r.state in ('sent', 'bounced')
      order by 1`,
    values: [projectId],
    size: BATCH,
  })
  for await (const rows of batches) {
    await db.query(
      `insert into known_recipients (project_id, recipient)
       select $1, address from unnest($2::text[]) with ordinality r (address, n) order by n on conflict do nothing`,
      [projectId, rows.map(({ address }) => address)],
    )
  }
}
