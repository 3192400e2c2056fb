/**
 * Stores the links that let an owner decide an approval request from a notification mail. Each link can decide one
 * request, and only once.
 */
import { hashSecret } from '../../shared/secretHash.ts'
import type { Queryable } from '../db.ts'

/**
 * Selects the email addresses, in lower case, of people who may decide a project's approval requests by mail. The SQL
 * alias `p` names the project.
 */
export const APPROVERS = `
  select lower(p.approver_email) as address where p.approver_email is not null
  union
  select pe.email from people pe join person_projects pp on pp.person_id = pe.id
  where pp.project_id = p.id and pe.role = 'owner' and pe.email is not null`

/** Stores the link with which an owner decides an approval request. A repeated notification mail has the same link. */
export async function addApprovalLink(
  db: Queryable,
  { token, approvalId, address }: { token: string; approvalId: string; address: string },
): Promise<void> {
  await db.query(
    `insert into approval_links (token_hash, approval_id, address) values ($1, $2, $3) on conflict do nothing`,
    [hashSecret(token), approvalId, address],
  )
}

/**
 * Returns the approval request of an approval link, and the email address that got the link. @returns null if the
 * approval link does not exist, or if its address may no longer decide the request.
 */
export async function findApprovalLink(
  db: Queryable,
  token: string,
): Promise<{ approvalId: string; address: string; used: boolean } | null> {
  const { rows } = await db.query<{ approval_id: string; address: string; used: boolean }>(
    `select l.approval_id, l.address, l.used_at is not null as used
     from approval_links l join approvals a on a.id = l.approval_id join projects p on p.id = a.project_id
     where l.token_hash = $1 and l.address in (${APPROVERS})`,
    [hashSecret(token)],
  )
  const row = rows[0]
  if (row === undefined) return null
  return { approvalId: row.approval_id, address: row.address, used: row.used }
}

/** Reports that the email address of an approval link may no longer decide the approval request. */
export class LinkOverError extends Error {}

/**
 * Marks an approval link as used, in the same transaction as the decision that the link made. The function checks the
 * right of the link's address once more, because composing the mail can take seconds after the first check.
 * @throws {LinkOverError} if the address of the link may no longer decide the request.
 */
export async function useApprovalLink(db: Queryable, token: string): Promise<void> {
  const { rowCount } = await db.query(
    `update approval_links l set used_at = clock_timestamp()
     from approvals a join projects p on p.id = a.project_id
     where l.token_hash = $1 and a.id = l.approval_id and l.address in (${APPROVERS})`,
    [hashSecret(token)],
  )
  if (rowCount !== 1) throw new LinkOverError()
}
