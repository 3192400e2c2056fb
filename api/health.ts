import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { pendingMigrations } from '../sql/migrate.ts'
import { readChainStatus } from '../sql/till/chainStatus.ts'
import type { Services } from './context.ts'
import { operation } from './operation.ts'

const Check = t.Object({ status: t.String({ examples: ['ok'] }) })
const Readiness = t.Object({
  status: t.String({ examples: ['ready', 'unready'] }),
  checks: t.Record(t.String(), t.String()),
})

/** Payment workers report every two seconds, and within a time-out more when the RPC is slow. */
const RPC_REPORT_MAX_AGE_MS = 15_000

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
        const ready = Object.values(checks).every((check) => check === 'ok' || check === 'unused')
        if (!ready) set.status = 503
        return { status: ready ? 'ready' : 'unready', checks }
      },
      {
        detail: operation({
          summary: 'Whether the process can do its work',
          description:
            '503 while the database is away or lacks a migration, or the RPC does not answer the payment workers.',
          tag: 'Service',
          access: 'public',
          success: {
            status: 200,
            description: 'It can.',
            schema: Readiness,
            example: { status: 'ready', checks: { database: 'ok', migrations: 'ok', rpc: 'ok' } },
          },
        }),
      },
    )
}

async function databaseChecks(pool: Services['pool']): Promise<Record<string, string>> {
  try {
    const pending = await pendingMigrations(pool)
    if (pending.length > 0) return { database: 'ok', migrations: `${pending.length} to apply` }
    return { database: 'ok', migrations: 'ok', rpc: rpcCheck(await readChainStatus(pool)) }
  } catch {
    return { database: 'unreachable', migrations: 'unknown' }
  }
}

/** This process opens no RPC: it tells what the payment workers reported, and whether they still do. */
function rpcCheck(status: Awaited<ReturnType<typeof readChainStatus>>): string {
  if (status === null) return 'unused'
  if (status.ageMs > RPC_REPORT_MAX_AGE_MS) return 'no worker reports'
  return status.rpcError === null ? 'ok' : 'unreachable'
}
