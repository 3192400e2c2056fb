/** Decides which payments a settler (a worker process that settles payments) may take, and at which time. */
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { addJob, hasNoJob } from '../../queue/jobs.ts'

/**
 * Holds how long a payment is reserved for the settler (a worker process that settles payments) that took it. After
 * TAKEN, another settler may take it, because the first may have crashed. If the first settler is only slow, the two
 * settlers still store only one transaction.
 */
const TAKEN = "interval '3 seconds'"
/**
 * Limits how many waiting payments one query considers when it shares a batch fairly between projects. If more payments
 * wait, the next query begins after the last considered payment. Therefore many payments of one project cannot hide the
 * payments of another project.
 */
const WINDOW_MAX = 20_000

/** Names the newest payment that a query has considered. The next query considers the payments after it. */
export type WaitingCursor = { createdAt: Date; id: string }

/**
 * Holds the SQL condition under which a verified payment, with the table alias `p`, must be settled in its own
 * transaction. This is the case if the payment reverted, or if its payer made a group transaction (for several
 * payments) revert. It is also the case if the settler must deploy the payer's wallet, or if a contract wallet signed
 * the payment. The condition recognises a contract wallet by a signature that does not have 65 bytes. A payer with a
 * signature of 65 bytes can also have contract code, for which the settler asks the chain.
 */
export const GOES_ALONE = `(
  p.goes_alone or p.revert_count > 0 or length(p.signature) <> 132 or p.factory is not null or exists (
    select from lone_payers l
    where l.chain_id = p.chain_id and l.payer = lower(p.payer) and l.until > clock_timestamp()))`

const MAY_BE_TAKEN = `
  p.state = 'verified' and (p.settle_after is null or p.settle_after <= clock_timestamp() or p.id = any ($2))`

/**
 * Takes waiting verified payments for one settler (a worker process that settles payments). The projects take turns, so
 * that each waiting project gets one payment before any project gets a second one. While several projects wait, no
 * project gets more payments than the limit for one project.
 * @param room.grouped limits the number of taken payments that may share a transaction, in total and for one project.
 * The field `room.alone` sets the same limits for payments that need their own transaction.
 * @param own lists payments that the caller took earlier and has not finished.
 * @param after makes the query consider only the payments after this one. Null makes the query begin with the oldest.
 * @returns the taken payments, and the number of considered payments that still wait. Both are divided into payments
 * that share a transaction and payments with a separate transaction. The field `next` names the newest considered
 * payment if more payments may wait, and is null otherwise.
 */
export async function takeWaiting(
  db: Queryable,
  {
    chainId,
    own,
    room,
    after = null,
    windowMax = WINDOW_MAX,
  }: {
    chainId: number
    own: readonly string[]
    room: Record<'grouped' | 'alone', { most: number; share: number }>
    after?: WaitingCursor | null
    windowMax?: number
  },
): Promise<
  Record<'grouped' | 'alone', { taken: string[]; more: number }> & { next: WaitingCursor | null }
> {
  const { rows } = await db.query<{
    id: string | null
    alone: boolean | null
    waiting: number
    waiting_alone: number
    last_at: Date | null
    last_id: string | null
  }>({
    name: 'take-waiting',
    text: `
      with waiting as materialized (
        select p.id, p.project_id, p.created_at, ${GOES_ALONE} as alone
        from payments p
        where ${MAY_BE_TAKEN} and p.chain_id = $1
          and (p.created_at, p.id) > (coalesce($7::timestamptz, '-infinity'), coalesce($8::text, ''))
          and not exists (
            select from transaction_payments m join chain_transactions t on t.hash = m.hash
            where m.payment_id = p.id and t.state = 'open')
        order by p.created_at, p.id limit $9
      ), placed as (
        select w.*, row_number() over (partition by alone, project_id order by created_at, id) as place from waiting w
      ), ranked as (
        select d.*, row_number() over (partition by alone order by place, created_at, id) as rank,
               max(project_id) over (partition by alone) <> min(project_id) over (partition by alone) as several
        from placed d
      ), chosen as materialized (
        select r.id, r.alone from ranked r
        where r.rank <= case when r.alone then $5 else $3 end::int
          and (not r.several or r.place <= case when r.alone then $6 else $4 end::int)
      ), free as (
        -- The query selects by an array, because with a join PostgreSQL may rank the payments again for each row, which
        -- takes quadratic time.
        select p.id from payments p where p.id = any (array(select id from chosen)) and ${MAY_BE_TAKEN}
        order by p.id for no key update skip locked
      ), taken as (
        update payments p set settle_after = clock_timestamp() + ${TAKEN}
        where p.id = any (array(select id from free))
        returning p.id
      )
      select w.*, t.id, t.id in (select id from chosen where alone) as alone
      from (
        select count(*)::int as waiting, count(*) filter (where alone)::int as waiting_alone,
               max(created_at) as last_at, max(id) filter (where created_at = (select max(created_at) from waiting)) as last_id
        from waiting) w
      left join taken t on true`,
    values: [
      chainId,
      own,
      room.grouped.most,
      room.grouped.share,
      room.alone.most,
      room.alone.share,
      after?.createdAt ?? null,
      after?.id ?? null,
      windowMax,
    ],
  })
  const of = (wanted: boolean) =>
    rows.flatMap(({ id, alone }) => (id !== null && alone === wanted ? [id] : []))
  const { waiting, waiting_alone: alone, last_at: createdAt, last_id: id } = rows[0]!
  const [grouped, single] = [of(false), of(true)]
  return {
    grouped: { taken: grouped, more: waiting - alone - grouped.length },
    alone: { taken: single, more: alone - single.length },
    next: waiting === windowMax && createdAt !== null && id !== null ? { createdAt, id } : null,
  }
}

/**
 * Sets for how many seconds after its expiry a payment with an open transaction does not fail yet, by the clock of the
 * chain. In this time, a reorganisation may replace the newest blocks by an earlier block, in which the transaction is
 * still valid.
 */
export const REORGANISATION_SECONDS = 30

/**
 * Describes a verified payment that the settler (a worker process that settles payments) did not take when the
 * payment's job ran.
 */
export type Untaken = {
  id: string
  /**
   * Tells the state of the payment's transaction. The state `waiting` means that no transaction is in progress. The
   * state `sent` means that the RPC node has accepted a transaction. The state `open` means that a transaction is in
   * progress, but the RPC node has not accepted it, or the authorization has expired.
   */
  state: 'waiting' | 'sent' | 'open'
  goesAlone: boolean
  /**
   * Holds the time from which a settler (a worker process that settles payments) may take the payment. Null means that
   * a settler may take the payment now.
   */
  settleAfter: Date | null
}

/**
 * Returns those given payments on a chain that still have the state `verified`. @param headTime is the time of the
 * chain's newest block, in seconds.
 */
export async function findUntaken(
  db: Queryable,
  ids: readonly string[],
  { chainId, headTime }: { chainId: number; headTime: bigint },
): Promise<Untaken[]> {
  if (ids.length === 0) return []
  const { rows } = await db.query<{
    id: string
    state: Untaken['state']
    goes_alone: boolean
    settle_after: Date | null
  }>({
    name: 'find-untaken',
    text: `
      select p.id, ${GOES_ALONE} as goes_alone,
             case when not o.is_open then 'waiting'
                  when o.is_unsent or p.valid_before + ${REORGANISATION_SECONDS} < $2 then 'open' else 'sent' end as state,
             case when p.settle_after > clock_timestamp() then p.settle_after end as settle_after
      from payments p cross join lateral (
        select count(*) > 0 as is_open, bool_or(t.sent_at is null or t.send_error is not null) as is_unsent
        from transaction_payments m join chain_transactions t on t.hash = m.hash
        where m.payment_id = p.id and t.state = 'open') o
      where p.id = any ($1) and p.chain_id = $3 and p.state = 'verified'`,
    values: [ids, headTime, chainId],
  })
  return rows.map((row) => ({
    id: row.id,
    state: row.state,
    goesAlone: row.goes_alone,
    settleAfter: row.settle_after,
  }))
}

/**
 * Queues the settlement job of a payment, in place of a waiting job of the same payment.
 * @param due is a time of the database's clock, or the milliseconds until the job is due. If it is null, the job is due
 * at once, even if a settler (a worker process that settles payments) has taken the payment.
 */
export async function queueSettlement(
  db: Queryable,
  paymentId: string,
  due: Date | { inMs: number } | null,
): Promise<void> {
  if (due === null) {
    await db.query(
      `update payments set settle_after = null where id = $1 and settle_after is not null`,
      [paymentId],
    )
  }
  await addJob(db, {
    task: 'settle_payment',
    payload: { paymentId },
    key: `settle_payment:${paymentId}`,
    ...(due instanceof Date ? { runAt: due } : due),
  })
}

/**
 * Queues settlement jobs for payments that a group transaction (for several payments) should have settled but did not
 * transfer. From now on, each of them gets its own transaction.
 */
export async function sendAlone(db: Queryable, paymentIds: readonly string[]): Promise<void> {
  if (paymentIds.length === 0) return
  const { rows } = await db.query<{ id: string }>(
    `with due as (
       select id from payments where id = any ($1) and state = 'verified' order by id for no key update)
     update payments p set goes_alone = true from due where p.id = due.id returning p.id`,
    [paymentIds],
  )
  for (const { id } of rows) await queueSettlement(db, id, null)
}

/**
 * Records a problem of the service with the RPC node or with gas, and queues the affected payments again for a later
 * time.
 */
export async function postponePayments(
  pool: Pool,
  payments: readonly {
    paymentId: string
    trouble: string
    /**
     * Tells whether two simulations of the payment contradict each other. The payment then needs its own transaction
     * from now on.
     */
    isContradicted: boolean
    /** Holds the time of the next attempt, by the clock of this process. */
    runAt: Date
  }[],
): Promise<void> {
  if (payments.length === 0) return
  await transaction(pool, async (db) => {
    const ordered = payments.toSorted((a, b) => (a.paymentId < b.paymentId ? -1 : 1))
    for (const { paymentId, trouble, isContradicted, runAt } of ordered) {
      // The SQL adds the pause to the clock of the database, which decides when the payment is due.
      const { rows } = await db.query<{ settle_after: Date }>(
        `update payments set trouble = $2, trouble_count = trouble_count + 1,
           settle_after = clock_timestamp() + ($3::timestamptz - $5::timestamptz),
           goes_alone = goes_alone or $4, contradiction_count = contradiction_count + $4::int
         where id = $1 and state = 'verified' returning settle_after`,
        [paymentId, trouble, runAt, isContradicted, new Date()],
      )
      if (rows[0] !== undefined) await queueSettlement(db, paymentId, rows[0].settle_after)
    }
  })
}

/**
 * Finds verified payments that have no settlement job, or a job that failed for good. A job is missing if the
 * authorization has expired, or if a process crashed before it stored an open transaction.
 */
export async function findIdlePayments(
  db: Queryable,
  { chainId, olderThanMs, limit }: { chainId: number; olderThanMs: number; limit: number },
): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'find-idle-payments',
    text: `select p.id from payments p
           where p.state = 'verified' and p.chain_id = $1
             and p.created_at < clock_timestamp() - make_interval(secs => $2::float8 / 1000)
             and ${hasNoJob("'settle_payment:' || p.id")}
             and (p.valid_before + ${REORGANISATION_SECONDS} < extract(epoch from clock_timestamp()) or not exists (
               select from transaction_payments m join chain_transactions t on t.hash = m.hash
               where m.payment_id = p.id and t.state = 'open'))
           order by p.created_at limit $3`,
    values: [chainId, olderThanMs, limit],
  })
  return rows.map((row) => row.id)
}

/**
 * Sets how long each payment of a payer gets a separate transaction after one of them has made a group transaction
 * revert.
 */
const LONE = "interval '1 day'"

/** Records payers for a day, so that payments of these payers do not share a transaction with other payments. */
export async function keepAlone(
  db: Queryable,
  payers: readonly { chainId: number; payer: string }[],
): Promise<void> {
  if (payers.length === 0) return
  await db.query(
    `insert into lone_payers (chain_id, payer, until)
     select d.chain, d.payer, clock_timestamp() + ${LONE}
     from (
       select distinct chain, lower(payer) as payer from unnest($1::bigint[], $2::text[]) p (chain, payer)) d
     order by d.chain, d.payer
     on conflict (chain_id, payer) do update set until = excluded.until`,
    [payers.map((one) => one.chainId), payers.map((one) => one.payer)],
  )
}

/** Deletes the records of payers who no longer need a separate transaction for each payment. */
export async function deleteEndedLonePayers(db: Queryable): Promise<void> {
  await db.query('delete from lone_payers where until < clock_timestamp()')
}
