import { AggregatorRegistry, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { ObserveStore } from '../../shared/blobs/objectStore.ts'
import { type EventLoopDelay, measureEventLoop } from '../../shared/process/eventLoop.ts'
import { RUNNER_NAMES, TASK_POOL } from '../../shared/tasks.ts'
import { measureBlobs } from '../../sql/blobs/blobMetrics.ts'
import type { Pool } from '../../sql/db.ts'
import { type ProcessReport, readReports } from '../../sql/operations/processReports.ts'
import { readListeners } from '../../sql/operations/smtpListeners.ts'
import {
  type Backlog,
  countJobs,
  JOB_STATES,
  readBacklog,
} from '../../sql/operations/statistics.ts'
import { readBudgetUse, type SettlementLimits } from '../../sql/till/settle/settlementBudgets.ts'

/** Holds the Prometheus metrics of one API process. */
export type Metrics = {
  observe(request: { method: string; route: string | null; status: number; seconds: number }): void
  blobRequest: ObserveStore
  eventLoop: EventLoopDelay
  /** Counts a payment that was refused because its project has used up its daily settlements or gas. */
  settlementRefused(): void
  /** Returns the metrics in the Prometheus text format. @throws if the database is unreachable. */
  render(): Promise<string>
  contentType: string
}

/**
 * Sets the histogram buckets of request durations in seconds. The highest buckets are for redeem calls, which may last
 * until their wait limit.
 */
const DURATION_BUCKETS = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10, 30]

const GAUGES: readonly [name: string, help: string, value: (backlog: Backlog) => number | null][] =
  [
    ['purser_outbound_mails_pending', 'Mail not yet at its end', (now) => now.outboundMails],
    [
      'purser_payments_verified',
      'Payments on their way to the chain',
      (now) => now.verifiedPayments,
    ],
    [
      'purser_payments_oldest_verified_seconds',
      'Age of the oldest payment on its way to the chain; 0: none',
      (now) => now.oldestVerifiedS,
    ],
    [
      'purser_payments_unfinalized',
      'Settled payments that a reorganisation could still take back',
      (now) => now.unfinalizedPayments,
    ],
    [
      'purser_webhook_deliveries_pending',
      'Deliveries not at their end',
      (n) => n.pendingDeliveries,
    ],
    [
      'purser_chain_transactions_open',
      'Transactions not in a block',
      (now) => now.openTransactions,
    ],
    ['purser_worker_pools', 'Worker pools that are alive', (now) => now.workerPools],
    [
      'purser_pools_silent',
      'Kinds of pools with a process that stands still: its event loop is blocked, or it is frozen',
      (now) => now.silentPools,
    ],
    ['purser_rpc_up', 'Whether the RPC answered the payment workers', (now) => +now.rpcAnswers],
    [
      'purser_rpc_report_age_seconds',
      'Since a payment worker last asked the RPC',
      (now) => now.rpcReportAgeS,
    ],
    ['purser_blobs_waiting', 'Objects of deleted mail to be removed', (now) => now.blobsWaiting],
    [
      'purser_blobs_oldest_due_seconds',
      'How long the oldest object of deleted mail should have been gone',
      (now) => now.blobsOldestDueS,
    ],
    ['purser_chain_head', 'Number of the newest block seen', (now) => now.headNumber],
  ]

const OWN = crypto.randomUUID()

/** Returns the metrics that other processes have reported. Each time series of these metrics names its process. */
async function reportedMetrics(pool: Pool, own: ProcessReport): Promise<string> {
  const reports = [own, ...(await readReports(pool))]
  const labelled = reports.map(({ id, part, metrics }) =>
    metrics.map((metric) => ({
      ...metric,
      values: metric.values.map((value) => ({
        ...value,
        labels: { ...value.labels, part, process: id.slice(0, 8) },
      })),
    })),
  )
  return await AggregatorRegistry.aggregate(labelled).metrics()
}

type BudgetUse = Awaited<ReturnType<typeof readBudgetUse>>

/**
 * Describes gauges that show how much of their limits the projects have used. An operator should set an alarm on the
 * first two, because they show how the operator's gas is being spent.
 */
const BUDGET_GAUGES: readonly [name: string, help: string, value: (use: BudgetUse) => number][] = [
  [
    'purser_settlement_budget_used_ratio',
    'The highest share of its daily settlements or gas that a project has used',
    (use) => use.share,
  ],
  [
    'purser_settlement_budgets_used_up',
    'Projects that may settle no more today',
    (use) => use.usedUp,
  ],
  ['purser_settlements_today', 'Payments claimed on this UTC day', (use) => use.settlements],
  ['purser_settlement_gas_today', 'Gas of settlements on this UTC day', (use) => use.gas],
]

/** Creates the Prometheus metrics of a process. */
export function createMetrics({
  pool,
  events,
  waiters,
  limits,
}: {
  pool: Pool
  /**
   * Holds the event readers (open event streams and waiting calls) of this process, because a metric shows their
   * number.
   */
  events: { size(): number }
  /** Holds the requests of this process that wait for the result of a job. */
  waiters: { size(): number }
  /** Holds the limits that the service sets for each project and day. */
  limits: SettlementLimits
}): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const durations = new Histogram({
    name: 'purser_http_request_duration_seconds',
    help: 'Duration of requests by method, route and status',
    labelNames: ['method', 'route', 'status'],
    buckets: DURATION_BUCKETS,
    registers,
  })
  const jobs = new Gauge({
    name: 'purser_jobs',
    help: 'Jobs by task and state',
    labelNames: ['task', 'state'],
    registers,
  })
  const oldest = new Gauge({
    name: 'purser_jobs_oldest_due_seconds',
    help: 'How long the oldest job that waits for a worker has been due',
    labelNames: ['task'],
    registers,
  })
  const readers = new Gauge({
    name: 'purser_event_readers',
    help: 'Requests of this process that wait for events',
    registers,
  })
  const waiting = new Gauge({
    name: 'purser_result_readers',
    help: 'Requests of this process that wait for the result of a job, such as a payment or a use of a secret',
    registers,
  })
  const refusals = new Counter({
    name: 'purser_settlement_refusals_total',
    help: 'Payments that this process refused because a limit of the day was reached',
    registers,
  })
  // The metrics that every process reports have a separate registry, because in the response, all values of a metric
  // must stand together.
  const ownRegistry = new Registry()
  const blobRequest = measureBlobs(ownRegistry)
  const eventLoop = measureEventLoop(ownRegistry)
  const budgetGauges = BUDGET_GAUGES.map(([name, help]) => new Gauge({ name, help, registers }))
  const pools = new Gauge({
    name: 'purser_pools',
    help: 'Living worker pools by name; 0: work of this kind waits',
    labelNames: ['pool'],
    registers,
  })
  const nonces = new Gauge({
    name: 'purser_gas_wallet_open_transactions',
    help: 'Transactions of a gas wallet that are in no block; each holds a nonce',
    labelNames: ['wallet'],
    registers,
  })
  const projectGas = new Gauge({
    name: 'purser_project_gas_today',
    help: 'Gas of a project on this UTC day, for the 20 projects that used most',
    labelNames: ['project'],
    registers,
  })
  const purseGas = new Gauge({
    name: 'purser_project_purse_gas_today',
    help: 'Gas of signed calls of a purse on this UTC day, for the 20 projects with most',
    labelNames: ['project'],
    registers,
  })
  const connections = new Gauge({
    name: 'purser_database_connections',
    help: 'Connections of this process to the database, and callers that wait for one',
    labelNames: ['state'],
    registers,
  })
  const smtp = new Gauge({
    name: 'purser_smtp_up',
    help: 'Whether an SMTP listener takes mail; no value: none ever ran',
    registers,
  })
  const gauges = GAUGES.map(([name, help]) => new Gauge({ name, help, registers }))

  async function collect(): Promise<string> {
    const [counts, backlog, use, listeners] = await Promise.all([
      countJobs(pool),
      readBacklog(pool),
      readBudgetUse(pool, limits),
      readListeners(pool),
    ])
    if (listeners.check === 'unused') smtp.remove()
    else smtp.set(+listeners.takesMail)
    for (const [n, [, , read]] of BUDGET_GAUGES.entries()) budgetGauges[n]!.set(read(use))
    readers.set(events.size())
    waiting.set(waiters.size())
    jobs.reset()
    oldest.reset()
    for (const task of new Set([...Object.keys(TASK_POOL), ...counts.map((count) => count.task)])) {
      for (const state of JOB_STATES) jobs.set({ task, state }, 0)
      oldest.set({ task }, 0)
    }
    for (const { task, state, count, oldestDueS } of counts) {
      jobs.set({ task, state }, count)
      if (state === 'ready') oldest.set({ task }, oldestDueS)
    }
    for (const [n, [, , read]] of GAUGES.entries()) {
      const value = read(backlog)
      // The code removes the gauge, because its function `reset` would set it to 0. The value 0 would wrongly mean that
      // a worker has asked the RPC node just now.
      if (value === null) gauges[n]!.remove()
      else gauges[n]!.set(value)
    }
    for (const [state, count] of Object.entries({
      open: pool.totalCount,
      idle: pool.idleCount,
      waiting: pool.waitingCount,
    })) {
      connections.set({ state }, count)
    }
    pools.reset()
    for (const name of RUNNER_NAMES) pools.set({ pool: name }, Number(backlog.pools[name] ?? 0))
    nonces.reset()
    for (const { wallet, open } of backlog.wallets) nonces.set({ wallet }, open)
    projectGas.reset()
    for (const { projectId, gas } of backlog.gas) projectGas.set({ project: projectId }, gas)
    purseGas.reset()
    for (const { projectId, gas } of backlog.purseGas) purseGas.set({ project: projectId }, gas)
    const own = { id: OWN, part: 'api', metrics: await ownRegistry.getMetricsAsJSON() }
    return (await registry.metrics()) + (await reportedMetrics(pool, own))
  }

  let rendering: Promise<string> | null = null
  return {
    contentType: registry.contentType,
    observe: ({ method, route, status, seconds }) =>
      // The caller chooses the text of an unknown path. Therefore the path must not become a label of a metric.
      durations.observe(
        { method: route === null ? 'other' : method, route: route ?? 'none', status },
        seconds,
      ),
    blobRequest,
    eventLoop,
    settlementRefused: () => refusals.inc(),
    // Concurrent requests for the metrics share one read of the database.
    render() {
      rendering ??= collect().finally(() => {
        rendering = null
      })
      return rendering
    },
  }
}
