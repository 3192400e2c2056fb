import type { Queryable } from '../../db.ts'

/**
 * Writes the SQL condition that a resource is sold by a project other than the given project. The condition holds if
 * the x402 challenge at the other project's verified endpoint names the payTo address of that project and not that of
 * the given project. A 402 response alone does not prove who sells a resource, because anyone may register its URL.
 *
 * @param projectId is an SQL expression, and so is `matchKey`.
 */
export const soldByAnother = (projectId: string, matchKey: string): string => `exists (
  select from seller_endpoints e
  join projects q on q.id = e.project_id and q.deleted_at is null and q.payments_enabled
  where e.match_key = ${matchKey} and e.project_id <> ${projectId} and e.deleted_at is null
    and e.verification_status = 'verified' and lower(q.pay_to) = any (e.challenge_pay_to)
    and not exists (
      select from projects own where own.id = ${projectId} and lower(own.pay_to) = any (e.challenge_pay_to)))`

/**
 * Tells whether a project other than the given one sells the resource. {@link soldByAnother} explains the condition.
 */
export async function isSoldByAnother(
  db: Queryable,
  projectId: string,
  matchKey: string,
): Promise<boolean> {
  const { rows } = await db.query<{ sold: boolean }>({
    name: 'is-sold-by-another',
    text: `select ${soldByAnother('$1', '$2')} as sold`,
    values: [projectId, matchKey],
  })
  return rows[0]!.sold
}
