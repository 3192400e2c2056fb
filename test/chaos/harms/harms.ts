import pg from 'pg'
import { commandOf, freeze, signal } from '../processes.ts'
import type { Random } from '../random.ts'
import type { PartName } from '../service.ts'
import { LINKS, type Setting } from '../setting.ts'
import type { Mood } from '../shop.ts'
import { killAtAcceptance, killAtSettlement } from './killAtEvent.ts'

/**
 * Injects one fault into the service, and repairs the damage afterwards. @returns a line of text that describes the
 * injected fault
 */
export type Harm = (setting: Setting, random: Random) => Promise<string>

/** Maps the name of each fault to the function that injects it. */
export type Harms = Readonly<Record<string, Harm>>

const SHORT_MS = 1_000
const LONG_MS = 4_000
const duration = (random: Random) => random.int(SHORT_MS, LONG_MS)

/**
 * Returns the function that injects a fault into one part of the service: it kills a process of the part, or pauses the
 * process for a while.
 */
const harmPart =
  (part: PartName): Harm =>
  async ({ service, mailWorkersKilledMs }, random) => {
    const pids = service.pidsOf(part)
    if (pids.length === 0) return `found no ${part} process`
    const pid = random.pick(pids)
    if (random.chance(0.5)) {
      if (commandOf(pid).includes('--pool mail')) mailWorkersKilledMs.push(performance.now())
      signal(pid, 'SIGKILL')
      return `killed ${part}`
    }
    const ms = duration(random)
    await freeze([pid], ms)
    return `froze ${part} for ${ms} ms`
  }

/** Makes the database end one or all of its connections. */
const endConnections: Harm = async ({ database }, random) => {
  const client = new pg.Client({ connectionString: database.directUrl() })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name like 'purser%' order by pid`,
    )
    const chosen = random.chance(0.5) ? rows : rows.length > 0 ? [random.pick(rows)] : []
    await client.query('select pg_terminate_backend(pid) from unnest($1::int[]) pid', [
      chosen.map(({ pid }) => pid),
    ])
    return `ended ${chosen.length} of ${rows.length} database connections`
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * Disturbs one network link: cuts one or all of its connections, breaks them in the middle of a transfer, or holds
 * their bytes back.
 */
const cutLink: Harm = async ({ links }, random) => {
  const name = random.pick(LINKS)
  const link = links[name]
  const deed = random.pick(['one', 'all', 'middle', 'middle', 'hold'] as const)
  if (deed === 'one') {
    const cut = link.cut((count) => random.int(0, Math.max(0, count - 1)))
    return `cut ${cut} connection of ${name}`
  }
  if (deed === 'all') return `cut all ${link.cut()} connections of ${name}`
  const ms = duration(random)
  if (deed === 'hold') {
    link.hold()
    await Bun.sleep(ms)
    link.release()
    return `held back the bytes of ${name} for ${ms} ms`
  }
  link.breaking = () =>
    random.chance(0.5)
      ? { way: random.pick(['question', 'answer']), afterBytes: random.int(0, 3_000) }
      : null
  await Bun.sleep(ms)
  link.breaking = null
  return `broke connections of ${name} in the middle for ${ms} ms`
}

/**
 * Disturbs PostgreSQL: kills its main process, restarts it in an orderly way, or pauses all its processes for a while.
 */
const harmPostmaster: Harm = async ({ database: { server } }, random) => {
  if (server === null) return 'there is no postmaster to harm'
  const deed = random.pick(['kill', 'kill', 'restart', 'freeze'] as const)
  if (deed === 'kill') {
    await server.killPostmaster()
    return 'killed the postmaster'
  }
  if (deed === 'restart') {
    await server.restart()
    return 'restarted the database'
  }
  const ms = duration(random)
  await server.freeze(ms)
  return `froze the database for ${ms} ms`
}

/**
 * Makes the chain's RPC node slow or unavailable, makes it return an error for an accepted transaction, or makes it
 * hide receipts.
 */
const harmRpc: Harm = async ({ rpc }, random) => {
  const deed = random.pick(['slow', 'away', 'lost answers', 'no receipts'] as const)
  const ms = duration(random)
  const error = { code: -32_000, message: 'try again later' }
  if (deed === 'slow') rpc.fault = { delayMs: random.int(200, 2_000) }
  if (deed === 'away') rpc.fault = { status: 503 }
  if (deed === 'lost answers') {
    rpc.errors.set('eth_sendRawTransaction', () => ({ ...error, after: random.chance(0.7) }))
  }
  if (deed === 'no receipts') {
    rpc.errors.set('eth_getTransactionReceipt', () => (random.chance(0.7) ? error : null))
  }
  await Bun.sleep(ms)
  rpc.fault = null
  rpc.errors.clear()
  return `RPC: ${deed} for ${ms} ms`
}

const harmReceiver: Harm = async ({ shop }, random) => {
  const mood = random.pick<Mood>(['failing', 'resetting', 'silent'])
  const ms = duration(random)
  shop.mood = mood
  await Bun.sleep(ms)
  shop.mood = 'well'
  shop.endSilence()
  return `the receiver was ${mood} for ${ms} ms`
}

/** Makes the smarthost send 4xx replies or delayed replies. */
const harmSmarthost: Harm = async ({ sink }, random) => {
  const deed = random.pick(['recipients', 'data', 'slow'] as const)
  const ms = duration(random)
  const refusal = { code: 451, message: '4.3.0 Try again later' }
  const { refuseRecipient, refuseData } = sink
  if (deed === 'recipients') sink.refuseRecipient = () => (random.chance(0.5) ? refusal : null)
  if (deed === 'data') sink.refuseData = () => refusal
  if (deed === 'slow') {
    sink.refuseData = async () => {
      await Bun.sleep(ms)
      return refuseData()
    }
  }
  await Bun.sleep(ms)
  Object.assign(sink, { refuseRecipient, refuseData })
  return `smarthost: ${deed} failed for ${ms} ms`
}

/** Kills every process of the service at once, including the supervisor process. */
const cutPower: Harm = async ({ service, mailWorkersKilledMs }) => {
  mailWorkersKilledMs.push(performance.now())
  service.killAll()
  await service.untilReady()
  return 'killed every process of the service at once; it is ready again'
}

export const HARMS = {
  api: harmPart('api'),
  smtp: harmPart('smtp'),
  workers: harmPart('workers'),
  connections: endConnections,
  cut: cutLink,
  postmaster: harmPostmaster,
  rpc: harmRpc,
  receiver: harmReceiver,
  smarthost: harmSmarthost,
  power: cutPower,
  acceptance: killAtAcceptance,
  settlement: killAtSettlement,
} as const satisfies Harms

export const HARM_NAMES = Object.keys(HARMS) as (keyof typeof HARMS)[]
