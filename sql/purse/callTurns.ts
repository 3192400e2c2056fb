/** Chooses the signed calls of purses (cancellations and transfers) that a gas wallet sends next. */
import type { Queryable } from '../db.ts'

/**
 * Writes SQL that computes when the service sends a purse's call again if the chain does not show it. The wait doubles
 * with each sending, from 30 seconds to 8 minutes, because a call that fails costs gas each time. For example, USDC
 * refuses a transfer to a blacklisted address.
 */
const SEND_AGAIN = `make_interval(secs => 30 * power(2, least(greatest(calls_sent - 1, 0), 4)))`

/**
 * Writes the SQL of the rows of the table `purchases` whose calls the service sends next. The projects take turns, so
 * that the calls of one project do not delay those of another. The parameters are the network ($1) and the greatest
 * number of calls ($2).
 * @param waiting is the condition of the index that begins with `project_id` and `sentAt`
 * @param due is the condition for calls that must be sent now
 * @param sentAt is the column with the time at which the service sent the call
 */
export const callsInTurn = ({
  waiting,
  due,
  sentAt,
}: {
  waiting: string
  due: string
  sentAt: 'cancel_sent_at' | 'transfer_sent_at'
}): string => {
  const isDue = `${waiting} and ${due} and network = $1 and valid_before > extract(epoch from clock_timestamp())
        and (${sentAt} is null or ${sentAt} < clock_timestamp() - ${SEND_AGAIN})`
  return `
    with recursive owners as (
      (select project_id from purchases where ${waiting} order by project_id limit 1)
      union all
      select (select project_id from purchases where ${waiting} and project_id > o.project_id order by project_id limit 1)
      from owners o where o.project_id is not null
    ), due as (
      select c.row, c.sent_at, row_number() over (partition by o.project_id order by c.sent_at nulls first, c.row) as turn
      from owners o cross join lateral (
        select row, ${sentAt} as sent_at from purchases where project_id = o.project_id and ${isDue}
        order by ${sentAt} nulls first limit $2) c
    ), chosen as (
      -- The random order gives each project the same chance if more projects than calls of one transaction wait.
      select row from due order by turn, sent_at nulls first, random() limit $2
    )
    -- The outer query checks the conditions again, because another worker may have sent a chosen call of a purse in the
    -- meantime.
    select row from purchases
    where row in (select row from chosen) and ${isDue} for update skip locked`
}

/**
 * Reverses the count of a sending for purse calls that no gas wallet could send. Therefore the wait before the next
 * sending of these calls does not grow.
 */
export async function recordUnsentCalls(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.query(
    'update purchases set calls_sent = calls_sent - 1 where id = any ($1) and calls_sent > 0',
    [ids],
  )
}
