import { Elysia } from 'elysia'
import { formatUsdc } from '../../shared/till/usdc.ts'
import type { Pool } from '../../sql/db.ts'
import { countJobs, readBacklog } from '../../sql/operations/statistics.ts'
import { jobsByPool, type Minute, readHistory } from '../../sql/operations/statisticsHistory.ts'
import type { Services } from '../http/services.ts'
import { consoleOperation } from './consoleOperation.ts'

/** Figures of the whole service, for a page that polls every two seconds. */
export function overviewRoutes({ pool }: Services) {
  let reading: ReturnType<typeof readOverview> | null = null
  return new Elysia().get(
    '/console/api/overview',
    // Concurrent requests share one query.
    () => {
      reading ??= readOverview(pool).finally(() => {
        reading = null
      })
      return reading
    },
    { detail: consoleOperation('operator') },
  )
}

async function readOverview(pool: Pool) {
  const [history, backlog, counts] = await Promise.all([
    readHistory(pool),
    readBacklog(pool),
    countJobs(pool),
  ])
  const jobs = jobsByPool(counts)
  const failedJobs = counts
    .filter(({ state }) => state === 'failed')
    .reduce((sum, { count }) => sum + count, 0)
  return {
    at: new Date().toISOString(),
    minutes: history.map((minute, n) => toView(minute, n === history.length - 1 ? jobs : null)),
    jobs,
    failedJobs,
    backlog,
  }
}

const toView = (minute: Minute, now: Minute['jobs']) => ({
  at: minute.minute.toISOString(),
  mailIn: minute.mailIn,
  mailOut: minute.mailOut,
  payments: minute.payments,
  paidUsdc: formatUsdc(minute.paidAtomic),
  webhooksOk: minute.webhooksOk,
  webhooksFailed: minute.webhooksFailed,
  jobs: now ?? minute.jobs,
})
