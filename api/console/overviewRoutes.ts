import { type Static, Type as t } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import { formatUsdc } from '../../shared/till/usdc.ts'
import type { Pool } from '../../sql/db.ts'
import { countJobs, readBacklog } from '../../sql/operations/statistics.ts'
import { type Counts, jobsByPool, type Minute } from '../../sql/operations/statisticsHistory.ts'
import { readRange } from '../../sql/operations/statisticsRange.ts'
import { badRequest } from '../http/errors.ts'
import type { Services } from '../http/services.ts'
import { consoleOperation } from './consoleOperation.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/**
 * Sets the number of parts into which the overview divides each time range. The field `widthMs` is the duration of one
 * part, and the field `parts` is the number of parts.
 */
const RANGES = {
  hour: { widthMs: MINUTE_MS, parts: 60 },
  day: { widthMs: HOUR_MS / 2, parts: 48 },
  week: { widthMs: 2 * HOUR_MS, parts: 84 },
  month: { widthMs: 24 * HOUR_MS, parts: 30 },
} as const

const ZONE_MINUTES_MAX = 14 * 60
const Query = t.Object({
  range: t.Optional(
    t.Union((Object.keys(RANGES) as (keyof typeof RANGES)[]).map((name) => t.Literal(name))),
  ),
  zoneMinutes: t.Optional(
    t.String({ pattern: '^-?[0-9]{1,3}$', error: 'be the minutes of a time zone east of UTC' }),
  ),
})

/** Serves statistics of the whole service to a console page that polls every two seconds. */
export function overviewRoutes({ pool }: Services) {
  const reading = new Map<string, ReturnType<typeof readOverview>>()
  return new Elysia().get(
    '/console/api/overview',
    // Concurrent requests for the same time range wait for the same database query.
    ({ query }) => {
      const wanted = readWanted(query)
      const key = `${wanted.range} ${wanted.zoneMinutes}`
      const read = reading.get(key) ?? readOverview(pool, wanted).finally(() => reading.delete(key))
      reading.set(key, read)
      return read
    },
    { query: Query, detail: consoleOperation('operator') },
  )
}

type Wanted = { range: keyof typeof RANGES; zoneMinutes: number }

/**
 * Reads the time range and the time zone that the console page requests. @throws {ApiError} 400 for an invalid time
 * zone.
 */
function readWanted({ range = 'hour', zoneMinutes = '0' }: Static<typeof Query>): Wanted {
  const minutes = Number(zoneMinutes)
  if (Math.abs(minutes) > ZONE_MINUTES_MAX || minutes % 15 !== 0) {
    throw badRequest(
      `zoneMinutes must be a multiple of 15, from -${ZONE_MINUTES_MAX} to ${ZONE_MINUTES_MAX}`,
    )
  }
  return { range, zoneMinutes: minutes }
}

async function readOverview(pool: Pool, { range, zoneMinutes }: Wanted) {
  const { widthMs, parts } = RANGES[range]
  const [found, backlog, counts] = await Promise.all([
    readRange(pool, { widthMs, parts, offsetMs: -zoneMinutes * MINUTE_MS }),
    readBacklog(pool),
    countJobs(pool),
  ])
  const jobs = jobsByPool(counts)
  const failedJobs = counts
    .filter(({ state }) => state === 'failed')
    .reduce((sum, { count }) => sum + count, 0)
  const { minutes } = found
  return {
    at: new Date().toISOString(),
    minutes: minutes.map((minute, n) => toMinute(minute, n === minutes.length - 1 ? jobs : null)),
    history: {
      range,
      widthMs,
      parts: found.parts.map((part) => ({ at: part.at.toISOString(), ...toCounts(part) })),
      count: parts,
    },
    jobs,
    failedJobs,
    backlog,
  }
}

const toCounts = (counts: Counts) => ({
  mailIn: counts.mailIn,
  mailOut: counts.mailOut,
  payments: counts.payments,
  paidUsdc: formatUsdc(counts.paidAtomic),
  webhooksOk: counts.webhooksOk,
  webhooksFailed: counts.webhooksFailed,
})

const toMinute = (minute: Minute, now: Minute['jobs']) => ({
  at: minute.minute.toISOString(),
  ...toCounts(minute),
  jobs: now ?? minute.jobs,
})
