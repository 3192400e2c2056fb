import { Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { RUNNER_NAMES } from '../../shared/tasks.ts'
import { pendingMigrations } from '../../sql/migrate.ts'
import { readListeners } from '../../sql/operations/smtpListeners.ts'
import { listLivingPools, listSilentPools } from '../../sql/queue/workerPools.ts'
import { readChainStatus } from '../../sql/till/watch/chainStatus.ts'
import { isDiskFull } from '../http/errors.ts'
import { operation } from '../http/operation.ts'
import type { Services } from '../http/services.ts'

const Check = t.Object({ status: t.String({ examples: ['ok'] }) })
const Readiness = t.Object({
  status: t.String({ examples: ['ready', 'degraded', 'unready'] }),
  checks: t.Record(t.String(), t.String()),
})
const Asked = t.Object({
  exclude: t.Optional(
    t.Literal('rpc', { error: 'be rpc', description: 'The check that does not decide.' }),
  ),
})

/**
 * Sets the age in milliseconds from which a worker's report on the RPC node counts as too old. Payment workers report
 * every two seconds, but a slow RPC node delays a report by its time-out.
 */
const RPC_REPORT_MAX_AGE_MS = 15_000

/**
 * Names the health checks that examine other processes. If only such a check fails, this process stays ready, because
 * it can still serve requests.
 */
const OTHERS = new Set(['smtp', 'workers', 'eventLoops'])

/**
 * Sets how many milliseconds the event loop of a process must be blocked before `/readyz` names the process. In this
 * time, the process could serve no request and no job.
 */
const LOOP_DELAY_MAX_MS = 1_000

/**
 * Serves the routes `/healthz` and `/readyz`. The route `/healthz` tells that this process runs. The route `/readyz`
 * tells whether it can serve requests, and uses the connections of `gatePool`, which serve only quick reads. Therefore
 * slow lists do not make a process look unready.
 */
export function healthRoutes({ gatePool: pool, metrics }: Services) {
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
      async ({ set, query: { exclude } }) => {
        const checks = await databaseChecks(pool, metrics.eventLoop.longestMs())
        const wanting = Object.keys(checks).filter(
          (name) => !['ok', 'unused'].includes(checks[name]!),
        )
        const unready = wanting.some((name) => !OTHERS.has(name) && name !== exclude)
        if (unready) set.status = 503
        return { status: unready ? 'unready' : wanting.length > 0 ? 'degraded' : 'ready', checks }
      },
      {
        query: Asked,
        detail: operation({
          summary: 'Whether the process can do its work',
          description:
            '503 while the database is away, full or lacks a migration, or the RPC does not answer the payment workers. ' +
            '`degraded` while another part is missing, stands still or its disk is full: requests are served, and their jobs wait. ' +
            'With `exclude=rpc`, an RPC that does not answer is `degraded`. Use it for a load balancer, because mail and the vault need no RPC.',
          tag: 'Service',
          access: 'public',
          success: {
            status: 200,
            description: 'It can.',
            schema: Readiness,
            example: {
              status: 'ready',
              checks: {
                database: 'ok',
                migrations: 'ok',
                rpc: 'ok',
                smtp: 'ok',
                workers: 'ok',
                eventLoops: 'ok',
              },
            },
          },
          alsoAnswer: { status: 503, description: 'It cannot.' },
        }),
      },
    )
}

async function databaseChecks(
  pool: Services['pool'],
  ownDelayMs: number,
): Promise<Record<string, string>> {
  try {
    const pending = await pendingMigrations(pool)
    if (pending.length > 0) return { database: 'ok', migrations: `${pending.length} to apply` }
    const [chain, living, silent, listeners] = await Promise.all([
      readChainStatus(pool),
      listLivingPools(pool),
      listSilentPools(pool),
      readListeners(pool),
    ])
    const missing = RUNNER_NAMES.filter((name) => !living.includes(name))
    return {
      database: isDiskFull() ? 'the disk is full' : 'ok',
      migrations: 'ok',
      rpc: rpcCheck(chain),
      smtp: listeners.check,
      workers: missing.length === 0 ? 'ok' : `missing: ${missing.join(', ')}`,
      eventLoops: loopCheck(silent, ownDelayMs),
    }
  } catch {
    return { database: 'unreachable', migrations: 'unknown' }
  }
}

/** Returns a text that names each process whose event loop was blocked for a second within the last twenty seconds. */
function loopCheck(silent: readonly string[], ownDelayMs: number): string {
  const blocked = ownDelayMs > LOOP_DELAY_MAX_MS ? ['this process', ...silent] : silent
  return blocked.length === 0 ? 'ok' : `blocked: ${blocked.join(', ')}`
}

/**
 * Returns the state of the RPC node as payment workers last reported it. An API process itself opens no connection to
 * the RPC node.
 */
function rpcCheck(status: Awaited<ReturnType<typeof readChainStatus>>): string {
  if (status === null) return 'unused'
  if (status.ageMs > RPC_REPORT_MAX_AGE_MS) return 'no worker reports'
  return status.rpcError === null ? 'ok' : 'unreachable'
}
