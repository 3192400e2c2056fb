import { parseArgs } from 'node:util'
import { ConfigError } from '../shared/config.ts'
import { runService } from '../shared/service.ts'
import { POOLS, type PoolName } from '../shared/tasks.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { startMaintenance } from './maintenance.ts'
import { parseInbound } from './parseInbound.ts'
import { startPool, type Tasks } from './pool.ts'
import { purgeProject } from './purgeProject.ts'
import { sendMail } from './sendMail.ts'
import { createTransport } from './transport.ts'

const CONCURRENCY_DEFAULT = 8
const CONCURRENCY_MAX = 500

/** What each pool runs; `shared/tasks.ts` names the pools' tasks, and a test holds the two together. */
export const POOL_TASKS: Record<PoolName, { tasks: Tasks; pollIntervalMs: number }> = {
  mail: {
    tasks: { parse_inbound: parseInbound, send_mail: sendMail, purge_project: purgeProject },
    pollIntervalMs: 1_000,
  },
}

function readArguments(args: string[]): { pools: PoolName[]; concurrency: number } {
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
  const concurrency = Number(values.concurrency ?? CONCURRENCY_DEFAULT)
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    throw new ConfigError(`--concurrency: must be a whole number of 1 to ${CONCURRENCY_MAX}`)
  }
  return { pools: pool === 'all' ? names : [pool as PoolName], concurrency }
}

if (import.meta.main) {
  await runService(process, { name: 'workers' }, async (config, log) => {
    const { pools, concurrency } = readArguments(process.argv.slice(2))
    const url = databaseUrl(config)
    const transport = createTransport(config.relayUrl)
    const deps = { log, mailDomain: config.mailDomain, transport }
    const running = await Promise.all(
      pools.map((name) =>
        startPool({ name, databaseUrl: url, concurrency, ...POOL_TASKS[name] }, deps),
      ),
    )
    const maintenance = startMaintenance(url, log)
    return {
      async stop() {
        await Promise.all([...running, maintenance].map((part) => part.stop()))
        transport.close()
      },
    }
  })
}
