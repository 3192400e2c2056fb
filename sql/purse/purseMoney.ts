/** Tells whether a purse (the wallet of a project) has money, or may still get money. */
import type { Queryable } from '../db.ts'
import { isHere } from '../till/watch/chainStatus.ts'

/**
 * Sets the smallest amount that counts as money of a purse, one cent, because anybody could send a smaller amount to
 * prevent the deletion of a project.
 */
const KEPT_ATOMIC = 10_000n

/**
 * Selects the present address and the retired addresses of the purse of project $1, each with its last known balance.
 */
const ADDRESSES = `
  addresses as materialized (
    select address, balance_atomic, balance_block, balance_at from purses where project_id = $1
    union all
    select address, balance_atomic, balance_block, balance_at from purse_keys
    where project_id = $1 and retired_at is not null)`

/**
 * Writes the SQL condition that a payment or purchase may still change a balance. On a former chain of the service, the
 * condition ends a day after the expiry of the authorization, because no worker reads that chain any more.
 * @param row is the SQL alias of the payment or purchase.
 */
const mayMove = (row: string): string =>
  `(${isHere(row)} or ${row}.valid_before > extract(epoch from clock_timestamp() - interval '1 day'))`

/**
 * Selects the payments to an address of the purse that may still change its balance. The service may still settle a
 * verified payment, and a gas wallet may still send a signed payment or refund of another purse. Until its block is
 * final, a chain reorganisation may undo a payment.
 */
const UNDER_WAY = `
  under_way as materialized (
    select lower(recipient) as address, amount_atomic, null::bigint as block_number
    from payments p
    where state = 'verified' and ${mayMove('p')} and lower(recipient) in (select address from addresses)
    union all
    select lower(recipient), amount_atomic, block_number
    from payments p
    where state = 'settled' and finalized_at is null and ${mayMove('p')}
      and lower(recipient) in (select address from addresses)
    union all
    select lower(pay_to), amount_atomic, case money when 'spent' then block_number end
    from purchases u
    where (money = 'open' or money = 'spent' and final_at is null) and ${mayMove('u')} and project_id <> $1
      and lower(pay_to) in (select address from addresses))`

/**
 * Returns the money of a purse in atomic units: the last known balances, and the payments that they do not contain yet.
 * An amount below one cent counts as 0.
 */
export async function purseMoney(
  db: Queryable,
  projectId: string,
): Promise<{ heldAtomic: bigint; awaitedAtomic: bigint }> {
  const { rows } = await db.query<{ held: string; awaited: string }>(
    `with ${ADDRESSES}, ${UNDER_WAY}
     select (select coalesce(sum(balance_atomic), 0) from addresses) as held,
       (select coalesce(sum(w.amount_atomic), 0) from under_way w join addresses a using (address)
        where w.block_number is null or a.balance_block is null or w.block_number > a.balance_block) as awaited`,
    [projectId],
  )
  const worth = (atomic: string) => (BigInt(atomic) < KEPT_ATOMIC ? 0n : BigInt(atomic))
  return { heldAtomic: worth(rows[0]!.held), awaitedAtomic: worth(rows[0]!.awaited) }
}

/**
 * Tells whether the purse of a deleted project has no money and will get none from a payment that the service knows.
 * Each balance must have been read after the deletion and within the last minute, because only the chain knows the
 * money that others sent. The result is also true if the project has no purse, or if the service never reached a chain.
 */
export async function isPurseEmpty(db: Queryable, projectId: string): Promise<boolean> {
  const { rows } = await db.query<{ empty: boolean }>(
    `with ${ADDRESSES}, ${UNDER_WAY}
     select not exists (
         select from addresses a, projects p
         where p.id = $1 and exists (select from chain_status)
           and (a.balance_at is null or a.balance_at <= p.deleted_at or a.balance_atomic >= $2
             or a.balance_at < clock_timestamp() - interval '1 minute'))
       and not exists (select from under_way)
       and not exists (
         select from purchases u
         where project_id = $1 and (money = 'open' or (money = 'spent' and final_at is null)) and ${mayMove('u')}) as empty`,
    [projectId, String(KEPT_ATOMIC)],
  )
  return rows[0]!.empty
}
