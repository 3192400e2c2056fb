import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { COUNTED_MAX, type Erasure, findErasure } from '../../sql/account/projects/erasure.ts'
import { IDLE_MAX_S } from '../../sql/blobs/sweepBlobs.ts'
import { notFound } from '../http/errors.ts'
import { operation, Time } from '../http/operation.ts'
import type { Services } from '../http/services.ts'
import { Params } from './projectDocs.ts'

const DAY_MS = 86_400_000

const Outside = t.Object({
  place: t.String({ examples: ['backups'] }),
  until: t.Union([Time, t.Null()], {
    description:
      'The copy is gone at this time. Null means that the service does not know the time.',
  }),
  description: t.String(),
})

const ErasureSchema = t.Object({
  projectId: t.String(),
  state: t.Union([t.Literal('not_requested'), t.Literal('running'), t.Literal('complete')]),
  requestedAt: t.Union([Time, t.Null()]),
  completedAt: t.Union([Time, t.Null()], { description: 'No row was left at this time.' }),
  left: t.Object(
    {
      mail: t.Integer(),
      vault: t.Integer(),
      deliveries: t.Integer(),
      logs: t.Integer(),
      other: t.Integer({
        description: 'This number counts rules, webhooks, events, counters and limits.',
      }),
    },
    { description: `This many rows are left. The count of one table stops at ${COUNTED_MAX}.` },
  ),
  kept: t.Object(
    {
      payments: t.Integer(),
      endpoints: t.Integer({ description: 'These endpoints stay, because payments name them.' }),
      keys: t.Integer({
        description: 'The hashes of revoked keys stay, so that the keys stay revoked.',
      }),
    },
    { description: 'These rows stay for audit.' },
  ),
  outside: t.Array(Outside, { description: 'The database cannot delete these copies.' }),
})

/** Serves the route that tells how far the erasure of a deleted project has come. */
export const erasureRoutes = (services: Services) =>
  new Elysia().use(routes(services, 'projects')).use(routes(services, 'identities'))

const routes = ({ pool, config }: Services, collection: 'projects' | 'identities') =>
  new Elysia({ prefix: `/v0/platform/${collection}` }).get(
    '/:projectId/erasure',
    async ({ params: { projectId } }) => {
      const erasure = await findErasure(pool, projectId)
      if (erasure === null) throw notFound('Project not found')
      return toView(projectId, erasure, config.retention.backups)
    },
    {
      params: Params,
      detail: operation({
        tag: 'Platform',
        access: 'platform:manage',
        summary: 'Tell whether a deleted project is erased',
        description:
          'A deletion answers at once; its data goes in the background. This tells when nothing is left, and where copies can be.',
        success: {
          status: 200,
          description: 'The state of the erasure, also of a project that is not deleted.',
          schema: ErasureSchema,
          example: {
            projectId: 'prj_0a1b2c3d4e5f60718293a4b5',
            state: 'complete',
            requestedAt: '2026-01-05T09:30:00.000Z',
            completedAt: '2026-01-05T09:30:04.210Z',
            left: { mail: 0, vault: 0, deliveries: 0, logs: 0, other: 0 },
            kept: { payments: 12, endpoints: 1, keys: 1 },
            outside: [
              {
                place: 'backups',
                until: '2026-02-04T09:30:04.210Z',
                description:
                  'Backups from before the end hold it; the operator keeps them 30 days.',
              },
            ],
          },
        },
        errors: { 404: 'Project not found' },
      }),
    },
  )

const toView = (
  projectId: string,
  { requestedAt, completedAt, left, kept, objects }: Erasure,
  backupDays: number | null,
): Static<typeof ErasureSchema> => ({
  projectId,
  state: completedAt !== null ? 'complete' : requestedAt === null ? 'not_requested' : 'running',
  requestedAt: requestedAt?.toISOString() ?? null,
  completedAt: completedAt?.toISOString() ?? null,
  left,
  kept,
  outside:
    requestedAt === null
      ? []
      : [backups(completedAt, backupDays), blobs(completedAt, objects), RECIPIENTS],
})

/**
 * Returns the time until which a backup can still hold data of the deleted project. The calculation assumes that the
 * last backup with this data was made just before the erasure ended.
 */
const backups = (completedAt: Date | null, days: number | null): Static<typeof Outside> => ({
  place: 'backups',
  until:
    completedAt === null || days === null
      ? null
      : new Date(completedAt.getTime() + days * DAY_MS).toISOString(),
  description:
    days === null
      ? 'Backups from before the end hold it for as long as the operator keeps them. BACKUP_RETENTION_DAYS is not set.'
      : `Backups from before the end hold it; the operator keeps them ${days} days.`,
})

/**
 * The object store removes an object an hour after the database deletes the last row that names it. The response states
 * two hours, so that the time also covers a late removal.
 */
const OBJECTS_GONE_MS = 2 * IDLE_MAX_S * 1000

const blobs = (completedAt: Date | null, objects: Erasure['objects']): Static<typeof Outside> => ({
  place: 'blobs',
  until:
    completedAt === null || objects !== 'on time'
      ? null
      : new Date(completedAt.getTime() + OBJECTS_GONE_MS).toISOString(),
  description: {
    none: 'None: originals and attachments of mail are rows of the database.',
    'on time':
      'Large originals and attachments leave the object store within two hours of the end; the keys to read them, too.',
    late: 'Objects of deleted mail wait for their removal: the object store does not remove them.',
  }[objects],
})

const RECIPIENTS: Static<typeof Outside> = {
  place: 'recipients',
  until: null,
  description:
    'Mail that was sent, webhooks that were delivered, and the chain keep what they got.',
}
