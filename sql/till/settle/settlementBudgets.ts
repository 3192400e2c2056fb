import type { Hex } from 'viem'
import type { Queryable } from '../../db.ts'

/**
 * Holds the limits on a project's stored payments and on its gas in one UTC day. A null limit means that the project
 * has no such limit.
 */
export type SettlementLimits = { dailySettlements: number | null; dailyGas: number | null }

export const NO_SETTLEMENT_LIMITS: SettlementLimits = { dailySettlements: null, dailyGas: null }

/** Holds the SQL expression for the present UTC day. */
export const TODAY = `(clock_timestamp() at time zone 'UTC')::date`

/**
 * Checks the daily limits, as a part of the SQL statement that stores payments (`with budgets as …, affordable as …`).
 * The query `affordable` returns the ids of those payments in $1 that stay within the limits $2 (settlements) and $3
 * (gas). A project's own limits replace $2 and $3. A second payment with the same authorization or the same name
 * (payment identifier) is not stored and does not count. The SQL counts a payment without a name by its id and a blank,
 * because no name contains a blank.
 */
export const AFFORDABLE = `
  budgets as (
    select p.project_id, coalesce(l.daily_settlements, $2::bigint) as settlements_max,
           coalesce(l.daily_gas, $3::bigint) as gas_max,
           coalesce(b.settlements, 0) as settlements, coalesce(b.gas, 0) as gas
    from (select distinct project_id from jsonb_to_recordset($1::jsonb) as p (project_id text)) p
    left join project_limits l on l.project_id = p.project_id
    left join settlement_budgets b on b.project_id = p.project_id and b.day = ${TODAY}
  ), presented as (
    select distinct on (a.project_id, a.chain_id, a.asset, lower(a.payer), a.authorization_nonce) a.*
    from jsonb_to_recordset($1::jsonb) as a (
      id text, project_id text, chain_id bigint, asset text, payer text, authorization_nonce text,
      payment_identifier text)
    where not exists (
      select from payments p
      where p.chain_id = a.chain_id and p.asset = a.asset and lower(p.payer) = lower(a.payer)
        and p.authorization_nonce = a.authorization_nonce)
      and (a.payment_identifier is null or not exists (
        select from payments p
        where p.project_id = a.project_id and lower(p.payer) = lower(a.payer)
          and p.payment_identifier = a.payment_identifier and p.state <> 'failed'))
    order by a.project_id, a.chain_id, a.asset, lower(a.payer), a.authorization_nonce, a.id
  ), affordable as (
    select c.id from (
      select id, project_id, row_number() over (partition by project_id order by id) as place from (
        select distinct on (n.project_id, lower(n.payer), coalesce(n.payment_identifier, n.id || ' ')) n.id, n.project_id
        from presented n
        order by n.project_id, lower(n.payer), coalesce(n.payment_identifier, n.id || ' '), n.id) fresh) c
    join budgets b on b.project_id = c.project_id
    where (b.settlements_max is null or b.settlements + c.place <= b.settlements_max)
      and (b.gas_max is null or b.gas < b.gas_max)
  )`

/**
 * Adds new payments to the daily counts, as a part of the SQL statement that stores payments (`with counted as …`). The
 * SQL adds the number of rows in `claimed` to the project's count for the current UTC day.
 */
export const COUNTED = `
  counted as (
    insert into settlement_budgets as s (project_id, day, settlements, allowed)
    select c.project_id, ${TODAY}, count(*), min(b.settlements_max)
    from claimed c join budgets b on b.project_id = c.project_id
    group by c.project_id order by c.project_id
    on conflict (project_id) do update set
      day = excluded.day, allowed = excluded.allowed,
      settlements = excluded.settlements + case when s.day = excluded.day then s.settlements else 0 end,
      gas = case when s.day = excluded.day then s.gas else 0 end
  )`

/**
 * Tells whether an error means that a concurrent payment has used up the daily limit of a project. The failed statement
 * has then stored nothing.
 */
export const isBudgetRace = (error: unknown): boolean =>
  (error as { constraint?: string }).constraint === 'settlement_budgets_within'

/** Tells whether a project has used up its daily limit on stored payments or on gas. */
export async function isBudgetUsedUp(
  db: Queryable,
  projectId: string,
  limits: SettlementLimits,
): Promise<boolean> {
  const { rows } = await db.query<{ used_up: boolean }>({
    name: 'is-budget-used-up',
    text: `
      select coalesce(coalesce(b.settlements, 0) >= coalesce(l.daily_settlements, $2::bigint), false)
          or coalesce(coalesce(b.gas, 0) >= coalesce(l.daily_gas, $3::bigint), false) as used_up
      from (select 1) one
      left join settlement_budgets b on b.project_id = $1 and b.day = ${TODAY}
      left join project_limits l on l.project_id = $1`,
    values: [projectId, limits.dailySettlements, limits.dailyGas],
  })
  return rows[0]!.used_up
}

/**
 * Adds the gas of mined transactions to the daily gas counts of their projects. Each transaction counts only once, even
 * if several processes record it. The payments of a group transaction share its gas. The caller must have locked the
 * transactions, and must call `countGas` in the database transaction that records them as mined.
 */
export async function countGas(
  db: Queryable,
  mined: readonly { hash: Hex; gasUsed: bigint }[],
): Promise<void> {
  const { rows } = await db.query<{ project_id: string; gas: string }>({
    name: 'note-gas',
    text: `
      with noted as (
        update chain_transactions t set gas_used = m.gas
        from unnest($1::text[], $2::bigint[]) m (tx, gas) join chain_transactions o on o.hash = m.tx
        where t.hash = m.tx and o.gas_used is distinct from m.gas
        returning t.hash, m.gas - coalesce(o.gas_used, 0) as gas
      ), numbered as (
        select m.payment_id, n.gas, count(*) over (partition by n.hash) as members,
               row_number() over (partition by n.hash order by m.payment_id) as number
        from noted n join transaction_payments m on m.hash = n.hash
      ), shared as (
        -- The parts of a group transaction's gas are whole numbers that add up to the gas of the transaction receipt.
        select payment_id, gas * number / members - gas * (number - 1) / members as gas from numbered
      )
      select p.project_id, sum(n.gas) as gas from shared n join payments p on p.id = n.payment_id
      group by p.project_id order by p.project_id`,
    values: [mined.map((one) => one.hash), mined.map((one) => one.gasUsed)],
  })
  if (rows.length === 0) return
  await db.query({
    name: 'count-gas',
    text: `
      insert into settlement_budgets as s (project_id, day, gas)
      select g.project_id, ${TODAY}, g.gas from unnest($1::text[], $2::bigint[]) g (project_id, gas)
      join projects p on p.id = g.project_id and p.deleted_at is null
      order by g.project_id
      on conflict (project_id) do update set
        day = excluded.day,
        settlements = case when s.day = excluded.day then s.settlements else 0 end,
        gas = excluded.gas + case when s.day = excluded.day then s.gas else 0 end`,
    values: [rows.map((row) => row.project_id), rows.map((row) => row.gas)],
  })
}

/**
 * Returns how far all projects have used up their daily limits in the current UTC day. The field `share` is the largest
 * fraction of a limit that any project has used, from 0 to 1.
 */
export async function readBudgetUse(
  db: Queryable,
  limits: SettlementLimits,
): Promise<{ share: number; usedUp: number; settlements: number; gas: number }> {
  const { rows } = await db.query<{
    share: number
    used_up: number
    settlements: string
    gas: string
  }>({
    name: 'read-budget-use',
    text: `
      select coalesce(max(share), 0)::float8 as share, count(*) filter (where share >= 1)::int as used_up,
             coalesce(sum(settlements), 0) as settlements, coalesce(sum(gas), 0) as gas
      from (
        select b.settlements, b.gas, greatest(
          b.settlements::float8 / greatest(coalesce(l.daily_settlements, $1::bigint), 1),
          b.gas::float8 / greatest(coalesce(l.daily_gas, $2::bigint), 1)) as share
        from settlement_budgets b left join project_limits l on l.project_id = b.project_id
        where b.day = ${TODAY}) used`,
    values: [limits.dailySettlements, limits.dailyGas],
  })
  const row = rows[0]!
  return {
    share: row.share,
    usedUp: row.used_up,
    settlements: Number(row.settlements),
    gas: Number(row.gas),
  }
}
