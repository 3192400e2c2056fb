import type { Cursor } from '../../shared/cursor.ts'
import { conditions, holds } from '../conditions.ts'
import type { Queryable } from '../db.ts'
import { type Order, pageOrder } from '../pageStart.ts'

/** Describes, for the audit log, the API key and the HTTP request that cause an action. */
export type Actor = {
  projectId: string
  /** Holds the prefix of the acting API key, never the whole key. */
  keyPrefix: string
  requestId: string
}

/**
 * Lists the results of an audited action. The result `refused` means that the object lacks a requested part, such as a
 * field of a credential. The result `failed` means that the service could not decrypt a stored secret.
 */
export const OUTCOMES = ['ok', 'not_found', 'expired', 'refused', 'failed'] as const
export type Outcome = (typeof OUTCOMES)[number]

/** Describes one entry of the audit log. */
export type AuditEntry = {
  row: bigint
  at: Date
  action: string
  /** Holds the name of the object of the audited action, such as a credential's name. */
  subject: string | null
  detail: string | null
  keyPrefix: string
  requestId: string
  outcome: Outcome
}

export type NewAuditEntry = {
  action: string
  subject: string | null
  detail?: string
  outcome: Outcome
}

/** Lists the columns of an audit entry: the six columns of {@link auditValues}, followed by the outcome. */
export const AUDIT_COLUMNS = 'project_id, actor, request_id, action, subject, detail, outcome'

/**
 * Writes SQL that inserts an audit entry inside a larger statement, so that an action and its entry commit together.
 * The parameter `outcome` is an SQL expression for the result of the action. In the larger statement, the values of
 * {@link auditValues} are the parameters from number `first` on.
 */
export const auditInsert = (first: number, outcome: string): string =>
  `insert into audit_log (${AUDIT_COLUMNS})
   values ($${first}::text, $${first + 1}::text, $${first + 2}::text, $${first + 3}::text, $${first + 4}::text,
           $${first + 5}::text, ${outcome})
   returning row as audit_row`

/** Returns the six SQL parameters of {@link auditInsert}. */
export const auditValues = (
  { projectId, keyPrefix, requestId }: Actor,
  { action, subject, detail }: Omit<NewAuditEntry, 'outcome'>,
): AuditValues => [projectId, keyPrefix, requestId, action, subject, detail ?? null]

type AuditValues = (string | null)[]

/** Returns the values of many audit entries as one array for each column. */
export const auditArrays = (entries: readonly AuditValues[]): (string | null)[][] =>
  [0, 1, 2, 3, 4, 5].map((column) => entries.map((values) => values[column] ?? null))

/** Writes an audit entry in the caller's transaction. */
export async function writeAudit(db: Queryable, actor: Actor, entry: NewAuditEntry): Promise<void> {
  await openAudit(db, actor, entry)
}

/**
 * Holds the `project_id` of audit entries that belong to no project. Platform keys, jobs and sign-ins to the console
 * cause such entries.
 */
export const ORGANIZATION = 'organization'

/**
 * Writes an audit entry before the audited action, in a separate SQL statement. Therefore no action can lack its entry.
 * @returns the row number of the audit entry, which {@link setOutcome} needs.
 */
export async function openAudit(
  db: Queryable,
  actor: Actor,
  entry: NewAuditEntry,
): Promise<string> {
  const { rows } = await db.query<{ audit_row: string }>({
    name: 'write-audit',
    text: auditInsert(1, '$7::text'),
    values: [...auditValues(actor, entry), entry.outcome],
  })
  return rows[0]!.audit_row
}

/** Corrects the outcome of an audit entry after the audited action failed. */
export async function setOutcome(db: Queryable, auditRow: string, outcome: Outcome): Promise<void> {
  await db.query('update audit_log set outcome = $2 where row = $1', [auditRow, outcome])
}

/** Sets the name of the audited object (`subject`) in an audit entry if the object had no name before the action. */
export async function setSubject(
  db: Queryable,
  auditRow: string,
  subject: string,
  detail?: string,
): Promise<void> {
  await db.query(
    'update audit_log set subject = $2, detail = coalesce($3, detail) where row = $1',
    [auditRow, subject, detail ?? null],
  )
}

/** Describes which audit entries a query selects. */
export type AuditFilter = {
  projectId: string
  action?: string
  /** Selects only audit entries with an action that begins with the word `category` and a dot. */
  category?: string
  subject?: string
  keyPrefix?: string
  requestId?: string
  /** Selects audit entries with one of the given outcomes. */
  outcomes?: readonly Outcome[]
  after?: Date
  before?: Date
  /** Selects audit entries that contain the text `text` in the action, subject, detail or actor. */
  text?: string
}

/** Joins the searched fields of an audit entry by line ends, so that no match spans two fields. */
const AUDIT_TEXT = `concat_ws(E'\\n', action, subject, detail, actor)`

/** Writes the SQL conditions of an audit filter, and appends their parameters to `values`. */
const auditConditions = (filter: AuditFilter, values: unknown[]): string =>
  conditions(values, [
    ['action = ?', filter.action],
    ["starts_with(action, ? || '.')", filter.category],
    ['subject = ?', filter.subject],
    ['actor = ?', filter.keyPrefix],
    ['request_id = ?', filter.requestId],
    ['outcome = any (?::text[])', filter.outcomes],
    ['at > ?', filter.after],
    ['at < ?', filter.before],
    [holds(AUDIT_TEXT), filter.text],
  ])

/** Lists the audit entries of a project in the requested order, with at most `limit` audit entries after the cursor. */
export async function listAudit(
  db: Queryable,
  filter: AuditFilter & { cursor: Cursor | null; limit: number; order?: Order },
): Promise<AuditEntry[]> {
  const { before, direction, start } = pageOrder(filter.order ?? 'newest', filter.cursor)
  const values: unknown[] = [filter.projectId, ...start, filter.limit]
  const tests = auditConditions(filter, values)

  const { rows } = await db.query<{
    row: string
    at: Date
    action: string
    subject: string | null
    detail: string | null
    actor: string
    request_id: string
    outcome: Outcome
  }>(
    `select row, at, action, subject, detail, actor, request_id, outcome from audit_log
     where project_id = $1 and (at, row) ${before} ($2::timestamptz, $3::bigint) ${tests}
     order by at ${direction}, row ${direction} limit $4`,
    values,
  )
  return rows.map(({ actor, request_id, row, ...entry }) => ({
    ...entry,
    row: BigInt(row),
    keyPrefix: actor,
    requestId: request_id,
  }))
}

/**
 * Counts the audit entries that have the same action and the same outcome. The field `today` counts the audit entries
 * since midnight UTC.
 */
export type AuditCount = { action: string; outcome: Outcome; entries: number; today: number }

/** Counts the newest `limit` audit entries that match a filter, grouped by action and outcome. */
export async function countAudit(
  db: Queryable,
  filter: AuditFilter & { limit: number },
): Promise<AuditCount[]> {
  const values: unknown[] = [filter.projectId, filter.limit]
  const tests = auditConditions(filter, values)
  const { rows } = await db.query<AuditCount>(
    `select action, outcome, count(*)::int as entries,
            (count(*) filter (where at >= date_trunc('day', now(), 'UTC')))::int as today
     from (select action, outcome, at from audit_log where project_id = $1 ${tests}
           order by at desc, row desc limit $2) newest
     group by action, outcome order by action, outcome`,
    values,
  )
  return rows
}
