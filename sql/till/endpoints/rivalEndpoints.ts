import type { Queryable } from '../../db.ts'

/**
 * Writes the SQL condition that another project sells a resource. Either a verified endpoint of a rival project proves
 * this, or the 402 response of the given project's own endpoint names only payees of others.
 *
 * @param projectId is an SQL expression for the given project. The parameter `matchKey` is an SQL expression for the
 * resource.
 */
export const soldByAnother = (projectId: string, matchKey: string): string =>
  `(${soldByRival(projectId, matchKey)} or ${namesOnlyOthers(projectId, matchKey)})`

/**
 * Writes the SQL condition that a rival project sells a resource. A rival project is any project other than the given
 * project. The rival project must have a verified endpoint for the resource. The x402 challenge at this endpoint must
 * name the payTo address of the rival project, and not the payTo address of the given project. A 402 response alone
 * does not prove who sells a resource, because anyone may register the URL of the resource.
 */
const soldByRival = (projectId: string, matchKey: string): string => `exists (
  select from seller_endpoints e
  join projects q on q.id = e.project_id and q.deleted_at is null and q.payments_enabled
  where e.match_key = ${matchKey} and e.project_id <> ${projectId} and e.deleted_at is null
    and e.verification_status = 'verified' and lower(q.pay_to) = any (e.challenge_pay_to)
    and not exists (
      select from projects own where own.id = ${projectId} and lower(own.pay_to) = any (e.challenge_pay_to)))`

/**
 * Writes the SQL condition that the last check of the project's own endpoint saw a payTo address of another project,
 * and not that of the given project. This condition is needed, because the other project may have registered the URL in
 * another spelling, such as `//x`, which the seller's server treats as the same URL.
 */
const namesOnlyOthers = (projectId: string, matchKey: string): string => `exists (
  select from seller_endpoints e
  join projects own on own.id = e.project_id
  join projects q on lower(q.pay_to) = any (e.challenge_pay_to) and q.deleted_at is null and q.payments_enabled
  where e.project_id = ${projectId} and e.match_key = ${matchKey} and e.deleted_at is null and q.id <> own.id
    and (own.pay_to is null or lower(own.pay_to) <> all (e.challenge_pay_to)))`

/**
 * Tells whether a project other than the given project sells a resource. The function uses the condition {@link
 * soldByAnother}.
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
