import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { parseIsoTime } from '../../shared/isoTime.ts'
import {
  AUDIT_RETENTION_DAYS,
  type AuditEntry,
  type AuditFilter,
  listAudit,
  OUTCOMES,
} from '../../sql/account/audit.ts'
import type { Pool } from '../../sql/db.ts'
import { ApiError, badRequest } from '../http/errors.ts'
import { operation, PageQuery, Time } from '../http/operation.ts'
import { cutPage, readPage } from '../http/page.ts'
import { identityOf } from '../http/requestState.ts'
import type { Services } from '../http/services.ts'

const Word = (description: string, example: string) =>
  t.Optional(t.String({ minLength: 1, maxLength: 256, description, examples: [example] }))

const Query = t.Composite([
  PageQuery,
  t.Object({
    action: Word('Exactly this action.', 'vault.get'),
    category: Word('Actions of this part of the service.', 'vault'),
    subject: Word('What it was done to, such as the name of a credential.', 'github'),
    actor: Word('Prefix of the key, as apiKeyPrefix.', 'loid-0a1b2c3d4e5f'),
    requestId: Word('The X-Request-Id of one request.', 'req_0a1b2c3d4e5f60718293a4b5'),
    outcome: t.Optional(
      t.Union(
        OUTCOMES.map((outcome) => t.Literal(outcome)),
        { description: 'How it ended.' },
      ),
    ),
    status: t.Optional(
      t.Union([t.Literal('success'), t.Literal('failure')], {
        description: 'success is the outcome ok, failure any other.',
      }),
    ),
    after: Word('Later than this ISO 8601 time.', '2026-01-05T00:00:00Z'),
    before: Word('Earlier than this ISO 8601 time.', '2026-01-06T00:00:00Z'),
  }),
])

const Nullable = t.Union([t.String(), t.Null()])
const Entry = t.Object({
  id: t.String({ examples: ['log_1'] }),
  action: t.String({ examples: ['vault.get'] }),
  category: t.String({ examples: ['vault'] }),
  subject: Nullable,
  description: Nullable,
  actor: t.String({ description: 'Prefix of the key that asked.' }),
  requestId: t.String(),
  outcome: t.String({ enum: [...OUTCOMES] }),
  status: t.String({ enum: ['success', 'failure'] }),
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
  createdAt: '2026-01-05T09:41:12.345Z',
}

const toView = (entry: AuditEntry) => ({
  id: `log_${entry.row}`,
  action: entry.action,
  category: entry.action.split('.')[0]!,
  subject: entry.subject,
  description: entry.detail,
  actor: entry.keyPrefix,
  requestId: entry.requestId,
  outcome: entry.outcome,
  status: entry.outcome === 'ok' ? ('success' as const) : ('failure' as const),
  createdAt: entry.at.toISOString(),
})

/** The audit log of a project. */
export function logRoutes({ pool }: Services) {
  return new Elysia().get(
    '/v0/logs',
    async ({ request, query }) => {
      const { projectId } = identityOf(request)
      if (projectId === null) {
        throw new ApiError(403, 'forbidden', 'A platform key has no log: use a project key')
      }
      const { limit, cursor } = readPage(query)
      const { action, category, subject, actor, requestId, outcome, status } = query
      const after = readTime('after', query.after)
      const before = readTime('before', query.before)
      return await listLogs(pool, {
        projectId,
        cursor,
        limit,
        ...(action === undefined ? {} : { action }),
        ...(category === undefined ? {} : { category }),
        ...(subject === undefined ? {} : { subject }),
        ...(actor === undefined ? {} : { keyPrefix: actor }),
        ...(requestId === undefined ? {} : { requestId }),
        ...(outcome === undefined ? {} : { outcome }),
        ...(status === undefined ? {} : { succeeded: status === 'success' }),
        ...(after === undefined ? {} : { after }),
        ...(before === undefined ? {} : { before }),
      })
    },
    {
      query: Query,
      detail: operation({
        tag: 'Logs',
        access: 'key',
        summary: 'List what was done, newest first',
        description:
          'For any project key, whatever its scopes. Holds every read, change and deletion of a credential, those that ' +
          `came to nothing too; never a secret. Entries are kept for ${AUDIT_RETENTION_DAYS} days.`,
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
        errors: { 403: 'The key is a platform key' },
      }),
    },
  )
}

/** One page of the audit log, newest first. */
export async function listLogs(pool: Pool, filter: AuditFilter) {
  const { limit } = filter
  const found = await listAudit(pool, { ...filter, limit: limit + 1 })
  const { page, next } = cutPage(found, limit, ({ at }) => at)
  return { logs: page.map(toView), count: page.length, ...next }
}

function readTime(field: string, given: string | undefined): Date | undefined {
  if (given === undefined) return undefined
  const at = parseIsoTime(given)
  if (at === null) throw badRequest(`${field} must be an ISO 8601 time with its zone, or a date`)
  return at
}
