import {
  RETENTION_CLASSES,
  RETENTION_NAMES,
  type Retention,
  type RetentionClass,
} from '../../../shared/retention.ts'
import type { Queryable } from '../../db.ts'
import { type Actor, writeAudit } from '../audit.ts'

const columnOf = (name: RetentionClass): string => `${RETENTION_CLASSES[name].column}_days`

/**
 * Writes an SQL expression for the number of days for which the service keeps rows of a retention class. The SQL reads
 * project_retention (alias r) and service_retention (alias v). Null means that the service keeps the rows for ever.
 */
export const daysOf = (name: RetentionClass): string => {
  const column = columnOf(name)
  return `coalesce(r.${column}, v.${column}, ${RETENTION_CLASSES[name].fallback ?? 'null::int'})`
}

/** Writes the SQL joins that {@link daysOf} needs. The parameter `project` is an SQL expression for the project. */
export const retentionJoins = (project: string): string =>
  `left join project_retention r on r.project_id = ${project} left join (select * from service_retention limit 1) v on true`

/** Selects a JSON object with the number of days for which the service keeps the rows of each retention class. */
export const RETENTION_JSON = `json_build_object(${RETENTION_NAMES.map(
  (name) => `'${name}', ${daysOf(name)}`,
).join(', ')})`

/**
 * Holds a retention day in SQL. The SQL counts 24 hours, because a pooler may drop the time zone UTC of a connection. In
 * another time zone, an interval of one day has only 23 hours when clocks go forward.
 */
export const RETENTION_DAY = "interval '24 hours'"

/**
 * Writes an SQL expression for the interval for which the service keeps the rows of a retention class. Null means for
 * ever. The parameter `project` is an SQL expression for the project.
 */
export const lifetimeOf = (name: RetentionClass, project: string): string =>
  `(select ${daysOf(name)} * ${RETENTION_DAY} from (select 1) one ${retentionJoins(project)})`

/**
 * Writes an SQL condition for the expired rows of a retention class in project $1. An expired row is older than the
 * time $2, and also older than the project's present retention days allow. The second check is needed, because an owner
 * may raise the retention days while batches for the shorter time still run.
 */
export const isExpired = (name: RetentionClass, age: string): string =>
  `${age} < $2::timestamptz and ${age} < now() - ${lifetimeOf(name, '$1')}`

/**
 * Holds changes of a project's own retention days. The value null restores the service's retention days for the
 * project.
 */
export type RetentionChange = { [Name in RetentionClass]?: number | null }

/**
 * Sets the retention days of a project that is not deleted. The project's audit log records the change and the actor.
 */
export async function updateRetention(
  db: Queryable,
  projectId: string,
  change: RetentionChange,
  actor: Actor,
): Promise<void> {
  const given = RETENTION_NAMES.filter((name) => change[name] !== undefined)
  if (given.length === 0) return
  const columns = given.map(columnOf)
  await db.query(
    `insert into project_retention (project_id, ${columns.join(', ')})
     values ($1, ${given.map((_, n) => `$${n + 2}::int`).join(', ')})
     on conflict (project_id) do update set ${columns.map((one) => `${one} = excluded.${one}`).join(', ')}`,
    [projectId, ...given.map((name) => change[name])],
  )
  const detail = given.map((name) => `${name} ${change[name] ?? 'as the service'}`).join(', ')
  await writeAudit(db, actor, {
    action: 'project.retention',
    subject: projectId,
    detail,
    outcome: 'ok',
  })
}

/**
 * Stores the operator's retention settings for all processes. A null setting means that the default number of days
 * applies.
 */
export async function storeServiceRetention(db: Queryable, retention: Retention): Promise<void> {
  const columns = RETENTION_NAMES.map(columnOf)
  await db.query(
    `insert into service_retention (${columns.join(', ')})
     values (${columns.map((_, n) => `$${n + 1}::int`).join(', ')})
     on conflict (singleton) do update set ${columns.map((one) => `${one} = excluded.${one}`).join(', ')}`,
    RETENTION_NAMES.map((name) => retention[name]),
  )
}
