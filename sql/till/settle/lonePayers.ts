import type { Queryable } from '../../db.ts'

/** How long the payments of a payer who spoiled a group go alone. */
const LONE = "interval '1 day'"

/** Payers whose payments share no transaction for a day. */
export async function keepAlone(
  db: Queryable,
  payers: readonly { chainId: number; payer: string }[],
): Promise<void> {
  if (payers.length === 0) return
  await db.query(
    `insert into lone_payers (chain_id, payer, until)
     select distinct chain, lower(payer), clock_timestamp() + ${LONE}
     from unnest($1::bigint[], $2::text[]) p (chain, payer) order by 2
     on conflict (chain_id, payer) do update set until = excluded.until`,
    [payers.map((one) => one.chainId), payers.map((one) => one.payer)],
  )
}

/** Deletes payers whose day has ended. */
export async function deleteEndedLonePayers(db: Queryable): Promise<void> {
  await db.query('delete from lone_payers where until < clock_timestamp()')
}
