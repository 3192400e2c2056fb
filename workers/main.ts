import { parseArgs } from 'node:util'
import pino, { type Logger, type LoggerOptions } from 'pino'
import { Registry } from 'prom-client'
import { approvalTokens } from '../shared/approvalLink.ts'
import { type ObjectStore, openStoreOf } from '../shared/blobs/objectStore.ts'
import { type Config, ConfigError } from '../shared/config/config.ts'
import { readBy } from '../shared/config/secrets.ts'
import { bounceKeys } from '../shared/mail/compose/bounceAddress.ts'
import { signInTokens } from '../shared/people/signInLink.ts'
import { isDatabaseUnavailable } from '../shared/process/databaseAway.ts'
import { measureEventLoop } from '../shared/process/eventLoop.ts'
import { LOG_DESTINATION } from '../shared/process/logOptions.ts'
import { runService } from '../shared/process/service.ts'
import { POOLS, RUNNER_NAMES, type RunnerName } from '../shared/tasks.ts'
import { measureBlobs } from '../sql/blobs/blobMetrics.ts'
import { checkDatabase } from '../sql/checkDatabase.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { createPool } from '../sql/db.ts'
import { masterKeys } from '../sql/keyring/keyring.ts'
import { reportMetrics } from '../sql/operations/processReports.ts'
import { startKeyring, startSigningKeys } from './keyring.ts'
import { createDns } from './mail/dns.ts'
import { startBlobSweep } from './operations/blobSweep.ts'
import { freshDns, PUBLIC_PORTS } from './operations/doctor/look.ts'
import { startMaintenance } from './operations/maintenance.ts'
import { createJobMetrics } from './queue/jobMetrics.ts'
import { startPool } from './queue/pool.ts'
import type { PoolSettings } from './queue/runner.ts'

const CONCURRENCY_MAX = 500

function readArguments(args: string[]): {
  runners: RunnerName[]
  /**
   * Limits the concurrent jobs of each worker pool. `null` means that each worker pool uses its own default.
   */
  concurrency: number | null
} {
  let values: { pool?: string; concurrency?: string }
  try {
    ;({ values } = parseArgs({
      args,
      options: { pool: { type: 'string' }, concurrency: { type: 'string' } },
    }))
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
  const { pool = 'all' } = values
  const wanted = pool === 'all' ? RUNNER_NAMES : pool.split(',').flatMap(runnersOf)
  const chosen = [...new Set(wanted)]
  if (values.concurrency === undefined) return { runners: chosen, concurrency: null }
  const concurrency = Number(values.concurrency)
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    throw new ConfigError(`--concurrency: must be a whole number of 1 to ${CONCURRENCY_MAX}`)
  }
  return { runners: chosen, concurrency }
}

/**
 * Returns the runners (groups of job types) of the worker pool with the given name. If the name is the name of a
 * runner, returns only this runner.
 */
function runnersOf(name: string): readonly RunnerName[] {
  const pools: Record<string, readonly RunnerName[]> = POOLS
  const found = pools[name] ?? RUNNER_NAMES.filter((runner) => runner === name)
  if (found.length > 0) return found
  const names = [...new Set([...Object.keys(POOLS), ...RUNNER_NAMES])]
  throw new ConfigError(`--pool: must be all, or some of ${names.join(', ')}, comma-separated`)
}

const openLog = (options: LoggerOptions) => pino(options, pino.destination(LOG_DESTINATION))

const ARGUMENTS = process.argv.slice(2)
/** Returns the names of the secrets that the runners of this process need. */
const secrets = () => readArguments(ARGUMENTS).runners.flatMap(readBy)

await runService(process, { name: 'workers', openLog, secrets }, async (config, log) => {
  // Graphile Worker does not wait for the SQL statement that deletes the database row of a finished job. If the
  // database connection breaks during this statement, a promise rejects that nobody handles. The process must not end
  // because of this. Later, queue/recoverJobs.ts releases the finished job, and the second run of the job changes
  // nothing.
  process.on('unhandledRejection', (error) => {
    if (isDatabaseUnavailable(error)) {
      return log.warn({ err: error }, 'the end of a job was not recorded: the database is away')
    }
    log.fatal({ err: error }, 'unhandled rejection')
    process.exit(1)
  })
  const { runners, concurrency } = readArguments(ARGUMENTS)
  const url = databaseUrl(config)
  await checkDatabase(url)
  const registry = new Registry()
  const metrics = createJobMetrics(registry)
  measureEventLoop(registry)
  const parts = createParts(config, url, log, registry)
  const settings: Omit<PoolSettings, 'databaseUrl'>[] = []
  for (const name of runners) settings.push(await parts.start[name]())
  const running = await Promise.all(
    settings.map((runner) =>
      startPool(
        { ...runner, metrics, databaseUrl: url, ...(concurrency === null ? {} : { concurrency }) },
        log,
      ),
    ),
  )
  const maintenance = startMaintenance(url, config.retention, log)
  const sweeps = parts.objectStore === null ? [] : [startBlobSweep(url, parts.objectStore, log)]
  const pool = createPool({ url, size: 1, name: 'purser worker metrics', log })
  const reports = reportMetrics(pool, { part: `workers ${runners.join(' ')}`, registry })
  return {
    async stop() {
      await Promise.all([...running, maintenance, ...sweeps].map((part) => part.stop()))
      await parts.stop()
      await reports.stop()
      await pool.end()
    },
  }
})

/**
 * Holds the settings and the tools that all runners share. Each function in `start` returns the settings of one runner.
 */
type Parts = {
  start: Record<RunnerName, () => Promise<Omit<PoolSettings, 'databaseUrl'>>>
  /**
   * Holds the object store for contents that are too large for the database. The object store is `null` if the database
   * stores large contents, or if this process does not need large contents.
   */
  objectStore: ObjectStore | null
  stop(): Promise<void>
}

/**
 * Creates the settings and the tools that the runners of this process need. The code of each runner is loaded only if
 * the runner starts, because the code of the other runners would cost a process up to 35 MB and 0.3 s of CPU.
 */
function createParts(config: Config, databaseUrl: string, log: Logger, registry: Registry): Parts {
  const { mailDomain, mailHostname, dnsServers, allowPrivateNetworks: allowPrivate } = config
  const dns = createDns(dnsServers.length > 0 ? dnsServers : undefined)
  const examine = () => ({ config, ...freshDns(config), ports: PUBLIC_PORTS })
  const objectStore = openStoreOf(config.blobStore, fetch, log, { observe: measureBlobs(registry) })
  const stops: (() => Promise<void>)[] = []
  return {
    objectStore,
    start: {
      inbound: async () => {
        const { inboundRunner, textLimits } = await import('./runners/inbound.ts')
        const { createLookUp } = await import('./mail/lookUp.ts')
        return inboundRunner({
          mailDomain,
          mailHostname,
          dns,
          lookUp: createLookUp(dns, dnsServers),
          bounceKeys: bounceKeys(masterKeys(config)),
          objectStore,
          postmaster: config.postmaster,
          textLimits: textLimits(config),
        })
      },
      outbound: async () => {
        const { outboundRunner } = await import('./runners/outbound.ts')
        const { createTransport } = await import('./mail/outbound/createTransport.ts')
        const { createMtaSts } = await import('./mail/outbound/direct/mtaSts.ts')
        const pool = createPool({ url: databaseUrl, size: 2, name: 'purser mta-sts', log })
        const findPolicy = createMtaSts({ pool, dns, allowPrivate, log })
        const direct = { dns, ownName: mailHostname, allowPrivate, findPolicy, log }
        const transport = createTransport(config, direct, log)
        stops.push(async () => {
          transport.close()
          await pool.end()
        })
        const keyring = await startSigningKeys(config, databaseUrl)
        void transport.check()
        return outboundRunner({
          mailDomain,
          baseUrl: config.http.baseUrl,
          approvalTokens: approvalTokens(masterKeys(config)),
          signInTokens: signInTokens(masterKeys(config)),
          transport,
          keyring,
          bounceKeys: bounceKeys(masterKeys(config)),
          postmaster: config.postmaster,
          storageBytes: config.limits.storageBytes,
          objectStore,
          examine,
        })
      },
      webhooks: async () => {
        const { webhooksRunner } = await import('./runners/webhooks.ts')
        const keyring = await startKeyring(config, databaseUrl, log)
        const { company } = config
        const { baseUrl } = config.http
        return webhooksRunner({ keyring, company, baseUrl, policy: { allowPrivate }, examine })
      },
      vault: async () => {
        const { vaultRunner } = await import('./runners/vault.ts')
        const keyring = await startKeyring(config, databaseUrl, log)
        return vaultRunner({ keyring, policy: { allowPrivate } })
      },
      purse: async () => {
        const { purseRunner } = await import('./runners/purse.ts')
        const keyring = await startKeyring(config, databaseUrl, log)
        const deniedPayees = new Set(config.chain.deniedPayees)
        const { dailyGas } = config.limits
        return purseRunner({ keyring, policy: { allowPrivate }, deniedPayees, dailyGas })
      },
      payments: async () => {
        const { paymentsRunner } = await import('./runners/payments.ts')
        const { startTill } = await import('./till/till.ts')
        const { measureNodes } = await import('./till/chain/rpcMetrics.ts')
        const { measureGas } = await import('./till/settle/gasMetrics.ts')
        const observe = measureNodes(registry, config.chain)
        const till = await startTill(config, databaseUrl, log, { observe })
        stops.push(() => till.stop())
        measureGas(registry, till.view)
        return paymentsRunner(till, { examine })
      },
    },
    async stop() {
      await Promise.all(stops.map((stop) => stop()))
    },
  }
}
