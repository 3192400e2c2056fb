import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { type NewAuditEntry, ORGANIZATION, writeAudit } from '../../sql/account/audit.ts'
import {
  createPlatformKey,
  listPlatformKeys,
  mayAddPlatformKey,
  PLATFORM_KEYS_MAX,
  type PlatformKey,
  revokePlatformKey,
} from '../../sql/account/keys/platformKeys.ts'
import { type Queryable, transaction } from '../../sql/db.ts'
import { LogQuery, listLogs } from '../account/logRoutes.ts'
import { badRequest, notFound } from '../http/errors.ts'
import type { Services } from '../http/services.ts'
import { organizationActor } from './access.ts'
import { consoleOperation } from './consoleOperation.ts'
import { OneLine } from './oneLine.ts'

const NewKey = t.Object({ name: OneLine })
const Params = t.Object({
  keyId: t.String({ pattern: '^[1-9][0-9]{0,17}$', error: 'be the number of a key' }),
})

/** Serves the settings of the organization: platform keys and the audit log. */
export function organizationRoutes(services: Services) {
  const { pool } = services
  const record = (db: Queryable, request: Request, entry: NewAuditEntry) =>
    writeAudit(db, organizationActor(request), entry)
  return new Elysia({ prefix: '/console/api/organization' })
    .get('/keys', async () => ({ keys: (await listPlatformKeys(pool)).map(toView) }), {
      detail: consoleOperation('operator'),
    })
    .post(
      '/keys',
      async ({ request, body, set }) => {
        const { created, rawKey } = await transaction(pool, async (db) => {
          if (!(await mayAddPlatformKey(db))) {
            throw badRequest(`An organization must have at most ${PLATFORM_KEYS_MAX} platform keys`)
          }
          const made = await createPlatformKey(db, body.name)
          await record(db, request, {
            action: 'platform_key.create',
            subject: made.created.prefix,
            detail: body.name,
            outcome: 'ok',
          })
          return made
        })
        set.status = 201
        return { ...toView(created), rawKey }
      },
      { body: NewKey, detail: consoleOperation('operator') },
    )
    .delete(
      '/keys/:keyId',
      async ({ request, params }) => {
        const revoked = await transaction(pool, async (db) => {
          const key = await revokePlatformKey(db, params.keyId)
          await record(db, request, {
            action: 'platform_key.revoke',
            subject: key?.prefix ?? params.keyId,
            outcome: key === null ? 'not_found' : 'ok',
          })
          return key
        })
        if (revoked === null) throw notFound('Platform key not found')
        return toView(revoked)
      },
      { params: Params, detail: consoleOperation('operator') },
    )
    .get('/logs', ({ query }) => listLogs(services, ORGANIZATION, query), {
      query: LogQuery,
      detail: consoleOperation('operator'),
    })
}

const toView = (key: PlatformKey) => ({
  keyId: key.id,
  prefix: key.prefix,
  name: key.name,
  createdAt: key.createdAt.toISOString(),
  revokedAt: key.revokedAt?.toISOString() ?? null,
})
