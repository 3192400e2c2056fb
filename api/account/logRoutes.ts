import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { RETENTION_CLASSES } from '../../shared/retention.ts'
import {
  type AuditCount,
  type AuditEntry,
  type AuditFilter,
  countAudit,
  listAudit,
  OUTCOMES,
  type Outcome,
} from '../../sql/account/audit.ts'
import type { Pool } from '../../sql/db.ts'
import { ApiError } from '../http/errors.ts'
import { readRange } from '../http/input/queryTime.ts'
import { readFiltered } from '../http/limits/searches.ts'
import { OrderQuery, operation, PageQuery, PartOf, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { identityOf, partyOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

const Word = (description: string, example: string) =>
  t.Optional(t.String({ minLength: 1, maxLength: 256, description, examples: [example] }))

const SEVERITIES = ['info', 'warning', 'error'] as const
type Severity = (typeof SEVERITIES)[number]
const SEVERITY: Record<Outcome, Severity> = {
  ok: 'info',
  not_found: 'warning',
  expired: 'warning',
  refused: 'warning',
  failed: 'error',
}
const STATUSES = ['success', 'failure', 'error', 'denied'] as const

const LogFilter = t.Object({
  action: Word('The list holds only entries with exactly this action.', 'vault.get'),
  category: Word('The list holds only actions of this part of the service.', 'vault'),
  subject: Word(
    'The subject names the thing that the action changed, for example a credential.',
    'github',
  ),
  actor: Word('The actor is the prefix of the key, as in `apiKeyPrefix`.', 'loid-0a1b2c3d4e5f'),
  requestId: Word(
    'The list holds only entries of the request with this X-Request-Id.',
    'req_0a1b2c3d4e5f60718293a4b5',
  ),
  outcome: t.Optional(
    t.Union(
      OUTCOMES.map((outcome) => t.Literal(outcome)),
      { description: 'The outcome says how the action ended.' },
    ),
  ),
  status: t.Optional(
    t.Union(
      STATUSES.map((status) => t.Literal(status)),
      {
        description:
          '`success` stands for the outcome `ok`. `failure` and `error` stand for every other outcome. `denied` stands for `refused`.',
      },
    ),
  ),
  severity: t.Optional(
    t.Union(
      SEVERITIES.flatMap((severity) => [
        t.Literal(severity),
        t.Literal(severity.toUpperCase() as Uppercase<Severity>),
      ]),
      { description: 'The list holds only entries of this severity.' },
    ),
  ),
  after: Word('The list holds only entries after this ISO 8601 time.', '2026-01-05T00:00:00Z'),
  before: Word('The list holds only entries before this ISO 8601 time.', '2026-01-06T00:00:00Z'),
  q: PartOf('the action, subject, description or actor'),
})
export const LogQuery = t.Composite([PageQuery, OrderQuery, LogFilter])

/**
 * Names the kind of object that an action in the audit log changes, if this kind differs from the action's category.
 */
const TARGET_TYPES: Readonly<Record<string, string>> = { vault: 'credential' }

const Nullable = t.Union([t.String(), t.Null()])
const Entry = t.Object({
  id: t.String({ examples: ['log_1'] }),
  action: t.String({ examples: ['vault.get'] }),
  category: t.String({ examples: ['vault'] }),
  subject: Nullable,
  description: Nullable,
  actor: t.String({ description: 'The actor is the prefix of the key that sent the request.' }),
  requestId: t.String(),
  outcome: t.String({ enum: [...OUTCOMES] }),
  status: t.String({ enum: ['success', 'failure'] }),
  severity: t.String({
    enum: [...SEVERITIES],
    description:
      'The severity is `error` for the outcome `failed`, `info` for `ok`, and `warning` for every other outcome.',
  }),
  targetType: t.String({
    description: 'This field names the kind of the subject.',
    examples: ['credential'],
  }),
  targetId: t.Union([t.String(), t.Null()], { description: 'This field repeats `subject`.' }),
  metadata: t.Object(
    { requestId: t.String(), outcome: t.String(), detail: t.Optional(t.String()) },
    {
      description:
        'This object repeats `requestId` and `outcome`, and holds `detail` if the entry has one.',
    },
  ),
  durationMs: t.Union([t.Integer(), t.Null()], {
    description: 'The field is always null, because the log measures no duration.',
  }),
  createdAt: Time,
})

const EXAMPLE: object = {
  id: 'log_42',
  action: 'vault.version_get',
  category: 'vault',
  subject: 'github',
  description: 'version 1',
  actor: 'loid-0a1b2c3d4e5f',
  requestId: 'req_0a1b2c3d4e5f60718293a4b5',
  outcome: 'ok',
  status: 'success',
  severity: 'info',
  targetType: 'credential',
  targetId: 'github',
  metadata: {
    requestId: 'req_0a1b2c3d4e5f60718293a4b5',
    outcome: 'ok',
    detail: 'version 1',
  },
  durationMs: null,
  createdAt: '2026-01-05T09:41:12.345Z',
}

const categoryOf = (action: string): string => action.split('.')[0]!

function toView(entry: AuditEntry) {
  const { action, subject, detail, requestId, outcome } = entry
  const category = categoryOf(action)
  return {
    id: `log_${entry.row}`,
    action,
    category,
    subject,
    description: detail,
    actor: entry.keyPrefix,
    requestId,
    outcome,
    status: outcome === 'ok' ? ('success' as const) : ('failure' as const),
    severity: SEVERITY[outcome],
    targetType: TARGET_TYPES[category] ?? category,
    targetId: subject,
    metadata: { requestId, outcome, ...(detail === null ? {} : { detail }) },
    durationMs: null,
    createdAt: entry.at.toISOString(),
  }
}

/**
 * Sets the maximum number of audit log entries that one call counts, because a project may have millions of entries.
 */
const COUNTED_MAX = 100_000
const Counts = t.Object({}, { additionalProperties: t.Integer() })
const Stats = t.Object({
  total: t.Integer(),
  complete: t.Boolean({
    description: `False means that only the newest ${COUNTED_MAX} rows were counted.`,
  }),
  success: t.Integer(),
  failure: t.Integer(),
  errors: t.Integer({ description: 'This field repeats `failure`.' }),
  today: t.Integer({ description: 'This number counts the entries since midnight UTC.' }),
  bySeverity: Counts,
  byOutcome: Counts,
  byCategory: Counts,
  byAction: Counts,
})

/** Serves the audit log of a project. */
export function logRoutes(services: Services) {
  const errors = { 403: 'The key is a platform key' }
  return new Elysia()
    .get(
      '/v0/logs',
      ({ request, query }) => listLogs(services, projectOfLog(request), query, partyOf(request)!),
      {
        query: LogQuery,
        detail: operation({
          tag: 'Logs',
          access: 'key',
          summary: 'List what was done, newest first',
          description:
            'For any project key, whatever its scopes. Holds every read, change and deletion of a credential, those that ' +
            `came to nothing too; never a secret. Entries are kept for ${RETENTION_CLASSES.logs.fallback} days unless the operator sets another time.`,
          success: {
            status: 200,
            description: 'One page of entries.',
            schema: t.Object({
              logs: t.Array(Entry),
              count: t.Integer(),
              nextPageToken: t.Optional(t.String()),
            }),
            example: { logs: [EXAMPLE], count: 1 },
          },
          errors,
        }),
      },
    )
    .get(
      '/v0/logs/stats',
      ({ request, query }) => {
        const filter = { projectId: projectOfLog(request), ...readFilter(query) }
        return readFiltered(services, partyOf(request)!, unindexed(query), (db) =>
          countLogs(db, filter),
        )
      },
      {
        query: LogFilter,
        detail: operation({
          tag: 'Logs',
          access: 'key',
          summary: 'Count what was done',
          description: 'Takes the filters of the list.',
          success: {
            status: 200,
            description: 'The number of entries, whole and by part.',
            schema: Stats,
            example: {
              total: 3,
              complete: true,
              success: 2,
              failure: 1,
              errors: 1,
              today: 2,
              bySeverity: { info: 2, warning: 1, error: 0 },
              byOutcome: { ok: 2, not_found: 1 },
              byCategory: { vault: 3 },
              byAction: { 'vault.get': 2, 'vault.put': 1 },
            },
          },
          errors,
        }),
      },
    )
}

/**
 * Returns the project whose audit log the API key may read. @throws {ApiError} 403 for a platform key.
 */
function projectOfLog(request: Request): string {
  const { projectId } = identityOf(request)
  if (projectId !== null) return projectId
  throw new ApiError(403, 'forbidden', 'A platform key has no log: use a project key')
}

/** Reads the filters of the audit log. @throws {ApiError} 400 for an invalid filter. */
function readFilter(query: Static<typeof LogFilter>): Omit<AuditFilter, 'projectId'> {
  const { actor, q, after: _after, before: _before, outcome, status, severity, ...same } = query
  const outcomes = OUTCOMES.filter(
    (one) =>
      (outcome ?? one) === one &&
      (status === undefined || hasStatus(one, status)) &&
      (severity === undefined || SEVERITY[one] === severity.toLowerCase()),
  )
  return {
    ...same,
    ...readRange(query),
    ...(actor === undefined ? {} : { keyPrefix: actor }),
    ...(outcomes.length === OUTCOMES.length ? {} : { outcomes }),
    ...(q === undefined ? {} : { text: q }),
  }
}

/** Tells whether a value of the audit log's filter `status` selects entries with the given outcome. */
function hasStatus(outcome: Outcome, status: (typeof STATUSES)[number]): boolean {
  if (status === 'denied') return outcome === 'refused'
  return (status === 'success') === (outcome === 'ok')
}

/**
 * Returns those filters of the request that need a scan of the audit log. With the filter by subject, the list is
 * empty, because an index finds the few entries of one subject.
 */
const unindexed = (query: Static<typeof LogFilter>): unknown[] => {
  const { subject, action, category, actor, requestId, outcome, status, severity, q } = query
  const filters = [action, category, actor, requestId, outcome, status, severity, q]
  return subject === undefined ? filters : []
}

async function countLogs(pool: Pool, filter: AuditFilter): Promise<Static<typeof Stats>> {
  const found = await countAudit(pool, { ...filter, limit: COUNTED_MAX })
  const sumBy = <Name extends string>(nameOf: (count: AuditCount) => Name) => {
    const sums: Partial<Record<Name, number>> = {}
    for (const count of found) {
      const name = nameOf(count)
      sums[name] = (sums[name] ?? 0) + count.entries
    }
    return sums
  }
  const total = found.reduce((sum, { entries }) => sum + entries, 0)
  const byOutcome = sumBy(({ outcome }) => outcome)
  const { ok: success = 0 } = byOutcome
  const bySeverity = sumBy(({ outcome }) => SEVERITY[outcome])
  return {
    total,
    complete: total < COUNTED_MAX,
    success,
    failure: total - success,
    errors: total - success,
    today: found.reduce((sum, { today }) => sum + today, 0),
    bySeverity: { info: 0, warning: 0, error: 0, ...bySeverity },
    byOutcome,
    byCategory: sumBy(({ action }) => categoryOf(action)),
    byAction: sumBy(({ action }) => action),
  }
}

/**
 * Returns one page of the audit log. The searches of several projects run in rotation, so a search may wait for
 * searches of other projects.
 * @param party is the party for which the search runs, because the parties take turns. By default it is the project.
 * @throws {ApiError} 400 for an invalid query.
 */
export async function listLogs(
  services: Pick<Services, 'pool' | 'searches'>,
  projectId: string,
  query: Static<typeof LogQuery>,
  party = projectId,
) {
  const { order = 'newest', limit: _limit, pageToken: _token, ...filter } = query
  const { limit, cursor } = readPage(query)
  const wanted = { projectId, ...readFilter(filter), order, cursor, limit: limit + 1 }
  const found = await readFiltered(services, party, unindexed(query), (db) => listAudit(db, wanted))
  const { page, next } = cutPage(found, limit, ({ at }) => at)
  return { logs: page.map(toView), count: page.length, ...next }
}
