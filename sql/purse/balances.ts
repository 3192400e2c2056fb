/** Stores the balances of purses as the chain shows them, and tells the owner of a low balance. */
import type { Address } from 'viem'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { recordEvents } from '../events/events.ts'
import { isHere } from '../till/watch/chainStatus.ts'
import { queuePayouts } from './payout.ts'

/**
 * Sets the maximum age of the known balance of a purse with open payments, and of a new purse without money. IDLE_AGE
 * is the maximum age for all other purses. The service reads an older balance again.
 */
const BUSY_AGE = '500 milliseconds'
const IDLE_AGE = '10 seconds'

/**
 * Sets how long the service waits between two readings of the balance of a retired address (the address of an earlier
 * purse key). The service reads the balance more often on the first day after the change of the key, and while a
 * payment of this address is open. After the deletion of the project, IDLE_AGE applies, because the purge (data
 * deletion) waits for these readings.
 */
const RETIRED_AGE = '1 hour'

/**
 * Returns the purse addresses with an outdated balance, in the order of their last reading. Busy addresses take turns
 * with the others. Otherwise many idle purses would delay the balance of a purse that pays or waits for its first money.
 */
export async function findStaleBalances(db: Queryable, limit: number): Promise<Address[]> {
  const { rows } = await db.query<{ address: Address }>({
    name: 'find-stale-balances',
    text: `with paying as materialized (
             select distinct u.project_id, u.payer from purchases u where u.money = 'open' and ${isHere('u')}
           ), known as (
             select p.address, p.balance_at, interval '${IDLE_AGE}' as age,
               p.balance_at is null
                 or (p.balance_atomic = 0 and p.created_at > clock_timestamp() - interval '1 hour')
                 or p.project_id in (select project_id from paying) as is_busy
             from purses p
             union all
             select k.address, k.balance_at, case when j.deleted_at is null then interval '${RETIRED_AGE}' else interval '${IDLE_AGE}' end,
               k.balance_at is null or k.retired_at > clock_timestamp() - interval '1 day'
                 or k.address in (select payer from paying)
             from purse_keys k join projects j on j.id = k.project_id
             where k.retired_at is not null
           ), ranked as (
             select address, balance_at, row_number() over (partition by is_busy order by balance_at nulls first) as place
             from known
             where balance_at is null
               or balance_at < clock_timestamp() - case when is_busy then interval '${BUSY_AGE}' else age end
           )
           select address from ranked order by place, balance_at nulls first limit $1`,
    values: [limit],
  })
  return rows.map(({ address }) => address)
}

/**
 * Writes the SQL condition under which the service accepts a balance that was read at the block $3. For a minute, the
 * service ignores a balance from a block before the stored one, because the chain node may lag behind. After a minute,
 * it accepts such a balance, because the chain must then have lost blocks.
 * @param row is the SQL alias of a row of the table purses or purse_keys.
 */
const counts = (row: string) => `(${row}.balance_block is null or ${row}.balance_block <= $3
  or ${row}.balance_at < clock_timestamp() - interval '1 minute')`

/**
 * Writes an SQL expression for the money that is on the way from the retired addresses of a purse (the addresses of its
 * earlier keys) to the present address. While this money is on the way, an empty purse with a new key does not count as
 * low. The SQL parameter $3 is the block of the balance. Each sum uses an index, because a busy purse has a million
 * purchases and is read twice a second.
 */
const arriving = (purse: string): string => {
  const sumOf = (condition: string) => `(
    select coalesce(sum(o.amount_atomic), 0)
    from purse_keys k join purchases o on o.project_id = k.project_id and o.payer = k.address
    where k.project_id = ${purse}.project_id and k.retired_at is not null
      and o.kind = 'sweep' and lower(o.pay_to) = ${purse}.address and ${condition} and ${isHere('o')})`
  return `${sumOf("o.money = 'open'")} + ${sumOf("o.money = 'spent' and o.block_number > $3")}`
}

/**
 * Stores the balances of purses at a given block. A balance that falls below the owner's low-balance limit causes one
 * event.
 */
export function recordBalances(
  pool: Pool,
  block: bigint,
  balances: readonly { address: Address; balanceAtomic: bigint }[],
): Promise<void> {
  return transaction(pool, async (db) => {
    const { rows } = await db.query<{
      project_id: string
      address: string
      balance: string
      low: string
    }>({
      name: 'record-balances',
      text: `with given as (
               select * from unnest($1::text[], $2::numeric[]) g (address, balance)
             ), before as (
               select p.project_id, p.address, g.balance, p.low_atomic, p.low_told_at,
                 case when p.low_atomic is not null then g.balance + ${arriving('p')} < p.low_atomic end as is_low
               from purses p
               join given g using (address)
               where ${counts('p')}
               order by p.project_id for update of p
             ), stored as (
               update purses p set balance_atomic = b.balance, balance_block = $3, balance_at = clock_timestamp(),
                 low_told_at = case when b.is_low then coalesce(b.low_told_at, clock_timestamp()) end
               from before b where p.project_id = b.project_id
             )
             , retired as (
               update purse_keys k set balance_atomic = g.balance, balance_block = $3, balance_at = clock_timestamp()
               from given g
               where k.address = g.address and k.retired_at is not null and ${counts('k')}
             )
             select project_id, address, balance, low_atomic as low from before
             where is_low and low_told_at is null`,
      values: [
        balances.map(({ address }) => address),
        balances.map(({ balanceAtomic }) => String(balanceAtomic)),
        block,
      ],
    })
    await queuePayouts(
      db,
      balances.map(({ address }) => address),
    )
    await recordEvents(
      db,
      rows.map(({ project_id: projectId, address, balance, low }) => ({
        projectId,
        type: 'purse.low',
        data: { address, balanceUsdcRaw: balance, lowUsdcRaw: low },
      })),
    )
  })
}
