/** Stores payment mandates. A mandate is an owner's permission for a project to make payments within limits. */
import type { Cursor } from '../../shared/cursor.ts'
import { newMandateId } from '../../shared/ids.ts'
import type { MandateBounds } from '../../shared/purse/mandate.ts'
import { type Actor, writeAudit } from '../account/audit.ts'
import { type Client, type Pool, type Queryable, transaction } from '../db.ts'
import { pageStart } from '../pageStart.ts'

/** Limits the number of a project's live mandates (spending limits), because each payment locks all of them. */
export const MANDATES_MAX = 100

/** Lists the periods in UTC for which a mandate (an owner's spending limit) may limit the sum of the payments. */
export const SUM_BOUNDS = ['hour', 'day', 'month', 'total'] as const
type SumBound = (typeof SUM_BOUNDS)[number]

/**
 * Holds the terms of a mandate (an owner's spending limit for a project), which the owner has set. Amounts are in
 * atomic units of the token. A null limit means that the mandate does not set this limit.
 */
export type MandateTerms = MandateBounds & {
  name: string
  task: string | null
  limits: Record<SumBound, bigint | null>
  paymentsPerMinute: number
  risePercent: number
  /** Holds the time from which the mandate is valid. Null means that the mandate is valid at once. */
  validFrom: Date | null
  validUntil: Date | null
}

export type MandateState = 'active' | 'frozen' | 'ended'

/** Describes a mandate (an owner's spending limit for a project), with the sums that its payments have used. */
export type Mandate = Omit<MandateTerms, 'validFrom'> & {
  row: bigint
  id: string
  validFrom: Date
  state: MandateState
  createdAt: Date
  reservedAtomic: bigint
  spentAtomic: bigint
  releasedAtomic: bigint
}

type MandateRow = {
  row: string
  id: string
  name: string
  task: string | null
  network: string
  hosts: string[]
  resources: string[]
  payees: string[] | null
  per_payment_atomic: string
  per_hour_atomic: string | null
  per_day_atomic: string | null
  per_month_atomic: string | null
  total_atomic: string | null
  payments_per_minute: number
  ask_above_atomic: string | null
  rise_percent: number
  valid_from: Date
  valid_until: Date | null
  state: MandateState
  created_at: Date
  reserved_atomic: string
  spent_atomic: string
  released_atomic: string
}

const COLUMNS = `m.row, m.id, m.name, m.task, m.network, m.hosts, m.resources, m.payees, m.per_payment_atomic,
  m.per_hour_atomic, m.per_day_atomic, m.per_month_atomic, m.total_atomic, m.payments_per_minute, m.ask_above_atomic,
  m.rise_percent, m.valid_from, m.valid_until, m.state, m.created_at, m.reserved_atomic, m.spent_atomic, m.released_atomic`

const big = (text: string | null): bigint | null => (text === null ? null : BigInt(text))

const toMandate = (row: MandateRow): Mandate => ({
  row: BigInt(row.row),
  id: row.id,
  name: row.name,
  task: row.task,
  network: row.network,
  hosts: row.hosts,
  resources: row.resources,
  payees: row.payees,
  perPaymentAtomic: BigInt(row.per_payment_atomic),
  limits: {
    hour: big(row.per_hour_atomic),
    day: big(row.per_day_atomic),
    month: big(row.per_month_atomic),
    total: big(row.total_atomic),
  },
  paymentsPerMinute: row.payments_per_minute,
  askAboveAtomic: big(row.ask_above_atomic),
  risePercent: row.rise_percent,
  validFrom: row.valid_from,
  validUntil: row.valid_until,
  state: row.state,
  createdAt: row.created_at,
  reservedAtomic: BigInt(row.reserved_atomic),
  spentAtomic: BigInt(row.spent_atomic),
  releasedAtomic: BigInt(row.released_atomic),
})

const text = (amount: bigint | null): string | null => (amount === null ? null : String(amount))

const valuesOf = (terms: MandateTerms) => [
  ...[terms.name, terms.task, terms.network, terms.hosts, terms.resources, terms.payees],
  ...[terms.perPaymentAtomic, terms.limits.hour, terms.limits.day, terms.limits.month].map(text),
  ...[text(terms.limits.total), terms.paymentsPerMinute, text(terms.askAboveAtomic)],
  ...[terms.risePercent, terms.validFrom, terms.validUntil],
]

/**
 * Creates a mandate (an owner's spending limit for a project).
 * @returns null if the project does not exist, and 'full' if the project already has {@link MANDATES_MAX} live
 * mandates.
 */
export function giveMandate(
  pool: Pool,
  actor: Actor,
  terms: MandateTerms,
): Promise<Mandate | null | 'full'> {
  const { projectId } = actor
  return transaction(pool, async (db) => {
    const { rows: projects } = await db.query<{ live: number }>(
      `select (select count(*) from mandates m where m.project_id = p.id and m.state <> 'ended')::int as live
       from projects p where p.id = $1 and p.deleted_at is null for no key update`,
      [projectId],
    )
    if (projects[0] === undefined) return null
    if (projects[0].live >= MANDATES_MAX) return 'full'
    const { rows } = await db.query<MandateRow>(
      `insert into mandates as m (id, project_id, created_by, name, task, network, hosts, resources, payees,
         per_payment_atomic, per_hour_atomic, per_day_atomic, per_month_atomic, total_atomic, payments_per_minute,
         ask_above_atomic, rise_percent, valid_from, valid_until)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
         coalesce($18, clock_timestamp()), $19)
       returning ${COLUMNS}`,
      [newMandateId(), projectId, actor.keyPrefix, ...valuesOf(terms)],
    )
    const mandate = toMandate(rows[0]!)
    await auditMandate(db, actor, 'mandate.give', mandate)
    return mandate
  })
}

/**
 * Changes a mandate (an owner's spending limit for a project). Payments that were signed earlier stay valid, and still
 * count against its limits.
 * @param options.change is a function that gets the present terms and state of the mandate, and returns the new ones.
 * The mandate's row is locked while it runs.
 * @param options.within is a function that runs in the same database transaction as the change of the mandate.
 * @returns null if the project has no such mandate, or if the mandate has ended.
 */
export function changeMandate(
  pool: Pool,
  actor: Actor,
  id: string,
  {
    change,
    within,
  }: {
    change: (present: Mandate) => MandateTerms & { state: MandateState }
    within?: (db: Client, after: Mandate) => Promise<void>
  },
): Promise<Mandate | null> {
  return transaction(pool, async (db) => {
    // The function locks the purse (a project's wallet) first, because every transaction must lock a purse before its
    // mandates (sql/purse/purchases/reserve.ts).
    await db.query('select from purses where project_id = $1 for update', [actor.projectId])
    const present = await lockMandate(db, actor.projectId, id)
    if (present === null || present.state === 'ended') return null
    const terms = change(present)
    const { rows } = await db.query<MandateRow>(
      `update mandates m set name = $2, task = $3, network = $4, hosts = $5, resources = $6, payees = $7,
         per_payment_atomic = $8, per_hour_atomic = $9, per_day_atomic = $10, per_month_atomic = $11,
         total_atomic = $12, payments_per_minute = $13, ask_above_atomic = $14, rise_percent = $15,
         valid_from = coalesce($16, m.valid_from), valid_until = $17, state = $18, changed_at = clock_timestamp()
       where m.row = $1 returning ${COLUMNS}`,
      [String(present.row), ...valuesOf(terms), terms.state],
    )
    const mandate = toMandate(rows[0]!)
    const action = mandate.state === 'ended' ? 'mandate.end' : 'mandate.change'
    await within?.(db, mandate)
    await auditMandate(db, actor, action, mandate)
    return mandate
  })
}

async function lockMandate(db: Queryable, projectId: string, id: string): Promise<Mandate | null> {
  const { rows } = await db.query<MandateRow>(
    `select ${COLUMNS} from mandates m where m.id = $1 and m.project_id = $2 for update`,
    [id, projectId],
  )
  return rows[0] === undefined ? null : toMandate(rows[0])
}

async function auditMandate(
  db: Queryable,
  actor: Actor,
  action: string,
  { id, name, hosts, resources, perPaymentAtomic, limits, state }: Mandate,
): Promise<void> {
  const sums = SUM_BOUNDS.map((bound) => `${bound} ${limits[bound] ?? 'none'}`).join(', ')
  const places = [...hosts, ...resources].join(' ')
  const detail = `${name}: ${state}, ${places}, payment ${perPaymentAtomic}, ${sums}`.slice(
    0,
    1_000,
  )
  await writeAudit(db, actor, { action, subject: id, detail, outcome: 'ok' })
}

/**
 * Finds one mandate (an owner's spending limit) of a project.
 * @returns null if the project has no such mandate.
 */
export async function findMandate(
  db: Queryable,
  projectId: string,
  id: string,
): Promise<Mandate | null> {
  const { rows } = await db.query<MandateRow>(
    `select ${COLUMNS} from mandates m where m.id = $1 and m.project_id = $2`,
    [id, projectId],
  )
  return rows[0] === undefined ? null : toMandate(rows[0])
}

/** Lists the mandates (an owner's spending limits) of a project, newest first. */
export async function listMandates(
  db: Queryable,
  filter: { projectId: string; cursor: Cursor | null; limit: number },
): Promise<Mandate[]> {
  const { rows } = await db.query<MandateRow>(
    `select ${COLUMNS} from mandates m
     where m.project_id = $1 and (m.created_at, m.row) < ($2::timestamptz, $3::bigint)
     order by m.created_at desc, m.row desc limit $4`,
    [filter.projectId, ...pageStart(filter.cursor), filter.limit],
  )
  return rows.map(toMandate)
}

/**
 * Locks the currently valid mandates (spending limits) of a project, and all stopped mandates. A stopped mandate
 * forbids payments to its host even after the end of its validity. Otherwise another mandate could pay this host from
 * then on. All payments lock the mandates in the order of their rows, so that two payments cannot deadlock.
 */
export async function lockMandates(db: Queryable, projectId: string): Promise<Mandate[]> {
  const { rows } = await db.query<MandateRow>({
    name: 'lock-mandates',
    text: `select ${COLUMNS} from mandates m
           where m.project_id = $1 and (m.state = 'frozen'
             or m.state = 'active' and m.valid_from <= clock_timestamp()
               and (m.valid_until is null or m.valid_until > clock_timestamp()))
           order by m.row for update`,
    values: [projectId],
  })
  return rows.map(toMandate)
}

/**
 * Holds how much of a mandate payments have used: the open and spent amounts of each period, and the number of payments
 * in the last minute.
 */
export type Used = Record<SumBound, bigint> & { lastMinute: number }

/**
 * Returns the amounts that payments have used of each locked mandate in the present hour, day and month.
 * @returns the used amounts, and the database time that determines the present hour, day and month.
 */
export async function readUsed(
  db: Queryable,
  mandates: readonly Mandate[],
): Promise<{ now: Date; used: Used[] }> {
  const { rows } = await db.query<{
    now: Date
    row: string
    hour: string
    day: string
    month: string
    last_minute: number
  }>({
    name: 'mandates-used',
    text: `select t.now, m.row,
             coalesce(sum(h.amount_atomic) filter (where h.hour >= date_trunc('hour', t.now, 'UTC')), 0) as hour,
             coalesce(sum(h.amount_atomic) filter (where h.hour >= date_trunc('day', t.now, 'UTC')), 0) as day,
             coalesce(sum(h.amount_atomic), 0) as month,
             (select count(*)::int from purchase_mandates pm
              where pm.mandate_row = m.row and pm.reserved_at > t.now - interval '1 minute') as last_minute
           from (select clock_timestamp()::timestamptz(3) as now) t
           cross join unnest($1::bigint[]) m (row)
           left join mandate_hours h on h.mandate_row = m.row and h.hour >= date_trunc('month', t.now, 'UTC')
           group by t.now, m.row`,
    values: [mandates.map(({ row }) => String(row))],
  })
  const byRow = new Map(rows.map((row) => [row.row, row]))
  return {
    now: rows[0]?.now ?? new Date(),
    used: mandates.map(({ row, reservedAtomic, releasedAtomic }) => {
      const sums = byRow.get(String(row))!
      return {
        hour: BigInt(sums.hour),
        day: BigInt(sums.day),
        month: BigInt(sums.month),
        total: reservedAtomic - releasedAtomic,
        lastMinute: sums.last_minute,
      }
    }),
  }
}
