/** Runs two PostgreSQL nodes under Patroni, with synchronous replication, behind HAProxy. */
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { freePort } from '../support/process/process.ts'
import { waitFor } from '../support/waitFor.ts'
import { type Account, type Daemon, startDaemon } from './daemon.ts'
import type { Tools } from './tools.ts'

export type Cluster = {
  /** Holds the database URL of HAProxy, which forwards connections to the primary. */
  url: string
  port: number
  /** Returns the name of the PostgreSQL node that is the primary now. */
  primary(): Promise<string>
  /**
   * Makes the primary's machine vanish: all its processes are frozen, and its connections neither respond nor end.
   * After the other node has become the primary, the frozen processes are killed, and their node returns as a standby.
   * @returns the milliseconds until the other node accepted writes
   */
  loseThePrimary(): Promise<number>
  stop(): Promise<void>
}

type Node = { name: string; port: number; restPort: number; configFile: string }

const PASSWORD = 'cluster'
const NAMES = ['a', 'b'] as const
const START_LIMIT_MS = 90_000
const FAILOVER_LIMIT_MS = 90_000

/** Starts etcd, both PostgreSQL nodes and HAProxy in a folder, and resolves when the standby is synchronous. */
export async function startCluster(tools: Tools, folder: string): Promise<Cluster> {
  const account = postgresAccount()
  prepareFolder(folder, account)
  const daemons = new Map<string, Daemon>()
  const start = (name: string, command: [string, ...string[]]) => {
    const alsoPid = () => postmasterOf(join(folder, `data-${name}`))
    const options = { logFile: join(folder, `${name}.log`), cwd: folder, account, alsoPid }
    daemons.set(name, startDaemon(command, options))
  }
  const etcdPort = await freePort()
  start('etcd', etcdCommand(tools, folder, etcdPort, await freePort()))
  const nodes: Node[] = []
  for (const name of NAMES) {
    const node = {
      name,
      port: await freePort(),
      restPort: await freePort(),
      configFile: join(folder, `${name}.yml`),
    }
    writeFileSync(node.configFile, nodeConfig(tools, folder, node, etcdPort))
    nodes.push(node)
  }
  const startNode = ({ name, configFile }: Node) => start(name, [tools.patroni, configFile])
  for (const node of nodes) startNode(node)
  const port = await freePort()
  writeFileSync(join(folder, 'haproxy.cfg'), proxyConfig(port, nodes))
  start('haproxy', [tools.haproxy, '-db', '-f', join(folder, 'haproxy.cfg')])
  const url = `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/purser`
  const cluster: Cluster = {
    url,
    port,
    primary: async () => (await primaryOf(nodes))?.name ?? 'none',
    async loseThePrimary() {
      const lost = await primaryOf(nodes)
      if (lost === null) throw new Error('there is no primary to lose')
      const beganMs = performance.now()
      daemons.get(lost.name)!.freeze()
      const others = nodes.filter((node) => node !== lost)
      await waitFor('the standby to be the primary', () => primaryOf(others), FAILOVER_LIMIT_MS)
      const ms = performance.now() - beganMs
      await daemons.get(lost.name)!.kill()
      startNode(lost)
      await untilSynchronous(nodes, START_LIMIT_MS)
      return ms
    },
    async stop() {
      for (const daemon of [...daemons.values()].toReversed()) await daemon.kill()
    },
  }
  try {
    await waitFor('a primary', () => primaryOf(nodes), START_LIMIT_MS)
    await createDatabase(url.replace(/purser$/, 'postgres'))
    await untilSynchronous(nodes, START_LIMIT_MS)
  } catch (error) {
    await cluster.stop()
    throw error
  }
  return cluster
}

/**
 * Finds the main process of PostgreSQL. Patroni starts it detached, so that PostgreSQL still runs after the end of
 * Patroni.
 */
function postmasterOf(dataDir: string): number | null {
  const file = join(dataDir, 'postmaster.pid')
  return existsSync(file) ? Number(readFileSync(file, 'utf8').split('\n')[0]) : null
}

function prepareFolder(folder: string, account: Account | null): void {
  mkdirSync(folder, { recursive: true })
  chmodSync(folder, 0o755)
  if (account !== null) chownSync(folder, account.uid, account.gid)
}

/** Finds the operating system user that runs the PostgreSQL nodes, because PostgreSQL refuses to run as root. */
function postgresAccount(): Account | null {
  if (userInfo().uid !== 0) return null
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((text) => text.startsWith('postgres:'))
  if (line === undefined) throw new Error('there is no user "postgres" to run the nodes as')
  const [, , uid, gid] = line.split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

function etcdCommand(
  { etcd }: Tools,
  folder: string,
  clientPort: number,
  peerPort: number,
): [string, ...string[]] {
  const client = `http://127.0.0.1:${clientPort}`
  const peer = `http://127.0.0.1:${peerPort}`
  return [
    etcd,
    ...['--name', 'one', '--data-dir', join(folder, 'etcd')],
    ...['--listen-client-urls', client, '--advertise-client-urls', client],
    ...['--listen-peer-urls', peer, '--initial-advertise-peer-urls', peer],
    ...['--initial-cluster', `one=${peer}`],
  ]
}

/**
 * Sets the smallest value of `ttl` that Patroni allows: after so many seconds without a sign of the primary, the
 * standby takes over.
 */
const nodeConfig = (
  { postgresBin }: Tools,
  folder: string,
  { name, port, restPort }: Node,
  etcdPort: number,
) => `
scope: purser
name: ${name}
restapi: { listen: '127.0.0.1:${restPort}', connect_address: '127.0.0.1:${restPort}' }
etcd3: { hosts: '127.0.0.1:${etcdPort}' }
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: { max_connections: 300, synchronous_commit: 'on', wal_log_hints: 'on' }
  initdb: [{ encoding: UTF8 }, { locale: C.UTF-8 }, data-checksums]
  pg_hba:
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication all 127.0.0.1/32 scram-sha-256
postgresql:
  listen: 127.0.0.1:${port}
  connect_address: 127.0.0.1:${port}
  data_dir: ${join(folder, `data-${name}`)}
  bin_dir: ${postgresBin}
  pgpass: ${join(folder, `pgpass-${name}`)}
  authentication:
    superuser: { username: postgres, password: ${PASSWORD} }
    replication: { username: replicator, password: ${PASSWORD} }
  parameters: { unix_socket_directories: '${folder}' }
`

/**
 * Returns the settings of HAProxy, without `on-marked-down shutdown-sessions`. Connections to a lost node therefore
 * stay open, which is harder for the service than closed connections.
 */
const proxyConfig = (port: number, nodes: readonly Node[]) => `
global
  maxconn 500
defaults
  mode tcp
  timeout connect 3s
  timeout client 30m
  timeout server 30m
  timeout check 2s
listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 1s fall 2 rise 1
${nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port} check port ${node.restPort}`).join('\n')}
`

/** Finds the node that Patroni calls the primary. Returns null while there is no primary. */
async function primaryOf(nodes: readonly Node[]): Promise<Node | null> {
  for (const node of nodes) {
    const answer = await fetch(`http://127.0.0.1:${node.restPort}/primary`, {
      method: 'OPTIONS',
      signal: AbortSignal.timeout(1_000),
    }).catch(() => null)
    if (answer?.status === 200) return node
  }
  return null
}

async function createDatabase(url: string): Promise<void> {
  await waitFor(
    'the database to be created',
    () =>
      query(url, 'create database purser').then(
        () => true,
        (error) => error.code === '42P04',
      ),
    START_LIMIT_MS,
  )
}

/**
 * Waits until Patroni has registered a synchronous standby, because only then the standby can take over. PostgreSQL
 * shows the synchronous standby earlier than Patroni does.
 */
async function untilSynchronous(nodes: readonly Node[], limitMs: number): Promise<void> {
  await waitFor(
    'a synchronous standby',
    async () => {
      const primary = await primaryOf(nodes)
      if (primary === null) return false
      const answer = await fetch(`http://127.0.0.1:${primary.restPort}/cluster`)
      const { members } = (await answer.json()) as { members: { role: string }[] }
      return members.some(({ role }) => role === 'sync_standby')
    },
    limitMs,
  )
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 2_000,
    query_timeout: 5_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    return (await client.query(text)).rows
  } finally {
    await client.end().catch(() => {})
  }
}
