import { parseArgs } from 'node:util'
import { ConfigError } from '../shared/config.ts'
import { isDatabaseUnavailable } from '../shared/databaseAway.ts'
import { runService } from '../shared/service.ts'
import { POOLS, type PoolName, type RunnerName } from '../shared/tasks.ts'
import { checkDatabase } from '../sql/checkDatabase.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { nextDeliveryInMs } from '../sql/events/deliveries.ts'
import { deliverWebhook } from './events/deliverWebhook.ts'
import { startKeyring, startSigningKeys } from './keyring.ts'
import { MAIL_LIMITS } from './lanes.ts'
import { createDns } from './mail/dns.ts'
import { createLookUp } from './mail/lookUp.ts'
import { parseInbound } from './mail/parseInbound.ts'
import { sendMail } from './mail/sendMail.ts'
import { createTransport } from './mail/transport.ts'
import { verifyDomain } from './mail/verifyDomain.ts'
import { startMaintenance } from './maintenance.ts'
import { type PoolSettings, startPool } from './pool.ts'
import { purgeProject } from './purgeProject.ts'
import { checkPayment } from './till/checkPayment.ts'
import { settlePayment } from './till/settlePayment.ts'
import { startTill } from './till/till.ts'
import { verifyEndpoint } from './till/verifyEndpoint.ts'

const CONCURRENCY_MAX = 500

/** What each runner does. */
export const RUNNERS: Record<RunnerName, Omit<PoolSettings, 'name' | 'databaseUrl'>> = {
  inbound: {
    tasks: {
      parse_inbound: parseInbound,
      purge_project: purgeProject,
      verify_domain: verifyDomain,
    },
    pollIntervalMs: 1_000,
    concurrency: 8,
  },
  outbound: {
    tasks: { send_mail: sendMail },
    pollIntervalMs: 1_000,
    // A job waits for the other side most of its time.
    concurrency: 32,
    connections: 12,
    lanes: MAIL_LIMITS,
  },
  webhooks: {
    tasks: { deliver_webhook: deliverWebhook, verify_endpoint: verifyEndpoint },
    pollIntervalMs: 500,
    // A job waits for its receiver most of its time and needs the database for a few milliseconds.
    concurrency: 200,
    connections: 12,
    nextInMs: nextDeliveryInMs,
  },
  payments: {
    tasks: { settle_payment: settlePayment, check_payment: checkPayment },
    pollIntervalMs: 200,
    // Jobs that run together are simulated, signed and sent together; they share the till's connections.
    concurrency: 32,
    connections: 36,
  },
}

function readArguments(args: string[]): {
  runners: RunnerName[]
  /** Null leaves each pool its own. */
  concurrency: number | null
} {
  const names = Object.keys(POOLS) as PoolName[]
  let values: { pool?: string; concurrency?: string }
  try {
    ;({ values } = parseArgs({
      args,
      options: { pool: { type: 'string' }, concurrency: { type: 'string' } },
    }))
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
  const pool = values.pool ?? 'all'
  if (pool !== 'all' && !names.includes(pool as PoolName)) {
    throw new ConfigError(`--pool: must be one of ${[...names, 'all'].join(', ')}`)
  }
  const chosen = (pool === 'all' ? names : [pool as PoolName]).flatMap((name) => [...POOLS[name]])
  if (values.concurrency === undefined) return { runners: chosen, concurrency: null }
  const concurrency = Number(values.concurrency)
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    throw new ConfigError(`--concurrency: must be a whole number of 1 to ${CONCURRENCY_MAX}`)
  }
  return { runners: chosen, concurrency }
}

if (import.meta.main) {
  await runService(process, { name: 'workers' }, async (config, log) => {
    // Graphile Worker deletes the row of a finished job without waiting for it, so a connection that breaks right then
    // rejects a promise that nobody holds. The pool then releases the job (queue/recoverJobs.ts), and running it again changes nothing.
    process.on('unhandledRejection', (error) => {
      if (isDatabaseUnavailable(error)) {
        return log.warn({ err: error }, 'the end of a job was not noted: the database is away')
      }
      log.fatal({ err: error }, 'unhandled rejection')
      process.exit(1)
    })
    const { runners, concurrency } = readArguments(process.argv.slice(2))
    const url = databaseUrl(config)
    await checkDatabase(url)
    const dns = createDns(config.dnsServers.length > 0 ? config.dnsServers : undefined)
    const transport = createTransport(config.relayUrl, {
      dns,
      ownName: config.mailHostname,
      allowPrivate: config.allowPrivateNetworks,
    })
    const keyring = runners.includes('webhooks')
      ? await startKeyring(config, url, log)
      : await startSigningKeys(config, url)
    const till = runners.includes('payments') ? await startTill(config, url, log) : null
    const deps = {
      log,
      mailDomain: config.mailDomain,
      mailHostname: config.mailHostname,
      dns,
      transport,
      allowPrivateNetworks: config.allowPrivateNetworks,
      lookUp: createLookUp(dns, config.dnsServers),
      keyring,
      ...(till === null ? {} : { till }),
    }
    const running = await Promise.all(
      runners.map((name) => {
        const settings = { ...RUNNERS[name], name, databaseUrl: url }
        return startPool(concurrency === null ? settings : { ...settings, concurrency }, deps)
      }),
    )
    const maintenance = startMaintenance(url, log)
    return {
      async stop() {
        await Promise.all([...running, maintenance].map((part) => part.stop()))
        await till?.stop()
        transport.close()
      },
    }
  })
}
