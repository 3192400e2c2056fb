import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { pendingMigrations } from '../sql/migrate.ts'
import type { Services } from './context.ts'
import { operation } from './operation.ts'

const Check = t.Object({ status: t.String({ examples: ['ok'] }) })
const Readiness = t.Object({
  status: t.String({ examples: ['ready', 'unready'] }),
  checks: t.Record(t.String(), t.String()),
})

/** `/healthz`: this process runs. `/readyz`: it can do its work. */
export function healthRoutes({ pool }: Services) {
  return new Elysia()
    .get('/healthz', () => ({ status: 'ok' }), {
      detail: operation({
        summary: 'Whether the process is up',
        tag: 'Service',
        access: 'public',
        success: { status: 200, description: 'It is.', schema: Check, example: { status: 'ok' } },
      }),
    })
    .get(
      '/readyz',
      async ({ set }) => {
        const checks = await databaseChecks(pool)
        const ready = Object.values(checks).every((check) => check === 'ok')
        if (!ready) set.status = 503
        return { status: ready ? 'ready' : 'unready', checks }
      },
      {
        detail: operation({
          summary: 'Whether the process can do its work',
          description: '503 while the database is away or lacks a migration.',
          tag: 'Service',
          access: 'public',
          success: {
            status: 200,
            description: 'It can.',
            schema: Readiness,
            example: { status: 'ready', checks: { database: 'ok', migrations: 'ok' } },
          },
        }),
      },
    )
}

async function databaseChecks(pool: Services['pool']): Promise<Record<string, string>> {
  try {
    const pending = await pendingMigrations(pool)
    return {
      database: 'ok',
      migrations: pending.length === 0 ? 'ok' : `${pending.length} to apply`,
    }
  } catch {
    return { database: 'unreachable', migrations: 'unknown' }
  }
}
