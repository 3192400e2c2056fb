import type { Queryable } from '../../db.ts'

/** Verified payments without a job that have no open transaction (lost by a crash) or are expired. */
export async function findIdlePayments(
  db: Queryable,
  { chainId, olderThanMs, limit }: { chainId: number; olderThanMs: number; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find-idle-payments',
    text: `select p.id from payments p
           where p.state = 'verified' and p.chain_id = $1
             and p.created_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000)
             and not exists (
               select from graphile_worker.jobs j where j.key = 'settle_payment:' || p.id)
             and (p.valid_before < extract(epoch from clock_timestamp()) or not exists (
               select from transaction_payments m join chain_transactions t on t.hash = m.hash
               where m.payment_id = p.id and t.state = 'open'))
           order by p.created_at limit $3`,
    values: [chainId, olderThanMs, limit],
  })
  return rows.map((row) => row.id)
}
