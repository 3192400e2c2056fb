import type { Queryable } from '../db.ts'

/**
 * Whether another project sells a resource: its verified endpoint has a challenge that names its own payTo, and not that of
 * this project. A URL that answers 402 alone proves nothing: anyone may register it.
 */
export async function isSoldByAnother(
  db: Queryable,
  projectId: string,
  matchKey: string,
): Promise<boolean> {
  const { rows } = await db.query<{ sold: boolean }>({
    name: 'is-sold-by-another',
    text: `
      select exists (
        select from seller_endpoints e
        join projects q on q.id = e.project_id and q.deleted_at is null and q.payments_enabled
        where e.match_key = $2 and e.project_id <> $1 and e.deleted_at is null
          and e.verification_status = 'verified' and lower(q.pay_to) = any (e.challenge_pay_to)
          and not exists (
            select from projects own where own.id = $1 and lower(own.pay_to) = any (e.challenge_pay_to))) as sold`,
    values: [projectId, matchKey],
  })
  return rows[0]!.sold
}
