/**
 * Implements the backup methods that docs/operating.md describes. RESTORE_METHOD chooses the method. The methods for a
 * separate PostgreSQL server need the programs of PostgreSQL in the folder POSTGRES_BIN, which is by default the newest
 * PostgreSQL of Debian.
 */
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/process/process.ts'

/**
 * Describes a database server that the test has started. `settings` are the settings with which the service uses this
 * server.
 */
export type Server = { settings: Record<string, string>; stop(): void }

export type Database = Server & {
  /**
   * Makes a backup of the database. The mail spool (the file of accepted mail) must have been copied before.
   */
  backUp(): void
  /** Restores the database backup on another database server. */
  restore(): Promise<Server>
}

const DEBIAN = '/usr/lib/postgresql'
const folders: string[] = []
const chosen = process.env.RESTORE_METHOD ?? 'bun run backup'

/** Removes the data folders of the stopped database servers. */
export function removeDatabases(): void {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
}

/** Starts a database that suits the backup method in RESTORE_METHOD. */
export async function startDatabase(): Promise<Database> {
  if (chosen === 'pg_dump') return dumped()
  if (chosen === 'pg_basebackup') return archived()
  if (chosen !== 'bun run backup') throw new Error(`RESTORE_METHOD: there is no ${chosen}`)
  // The embedded database is in DATA_DIR, so a backup of DATA_DIR also contains the database.
  const embedded: Server = { settings: {}, stop() {} }
  return { ...embedded, backUp() {}, restore: async () => embedded }
}

const PAGE = join(import.meta.dir, '../../../docs/operating.md')
/** Names the file of `pg_dump` in the commands of docs/operating.md. */
const DUMP = '/backups/2026-01-05.dump'

/** Starts a database that `pg_dump` backs up. The restore runs the commands of docs/operating.md. */
export async function dumped(): Promise<Database & { bin: string }> {
  const cluster = await newCluster()
  createDatabase(cluster)
  const file = join(cluster.folder, 'dump')
  return {
    ...cluster,
    backUp: () => run(cluster, 'pg_dump', ['--format=custom', `--file=${file}`, cluster.url]),
    async restore() {
      const other = await newCluster()
      createRole(other)
      const [, commands] = /```sh\n(createdb .*?)```/s.exec(readFileSync(PAGE, 'utf8'))!
      const settings = `ADMIN_URL='${other.adminUrl}' DATABASE_URL='${other.url}' PATH='${other.bin}':$PATH`
      run(cluster, 'bash', ['-ec', `export ${settings}\n${commands!.replace(DUMP, file)}`])
      return other
    },
  }
}

/** Returns the archive_command of docs/operating.md for another folder. */
export function archiveCommand(folder: string): string {
  const [, command] = /^archive_command = '(.*)'$/m.exec(readFileSync(PAGE, 'utf8'))!
  return command!.replaceAll('/backups/wal', folder)
}

async function archived(): Promise<Database> {
  const wal = (folder: string) => join(folder, 'wal')
  const cluster = await newCluster((folder) => [
    'archive_mode = on',
    `archive_command = '${archiveCommand(wal(folder))}'`,
  ])
  createDatabase(cluster)
  const base = join(cluster.folder, 'base')
  return {
    ...cluster,
    backUp() {
      const server = `--dbname=${cluster.adminUrl}`
      run(cluster, 'pg_basebackup', ['--checkpoint=fast', `--pgdata=${base}`, server])
      run(cluster, 'psql', [cluster.adminUrl, '-c', `select pg_create_restore_point('backup')`])
    },
    async restore() {
      const port = await freePort()
      const settings = [
        `port = ${port}`,
        'archive_mode = off',
        `restore_command = 'cp ${wal(cluster.folder)}/%f "%p"'`,
        `recovery_target_name = 'backup'`,
        `recovery_target_action = 'promote'`,
      ]
      appendFileSync(
        join(base, 'postgresql.auto.conf'),
        settings.map((line) => `${line}\n`).join(''),
      )
      run(cluster, 'bash', ['-c', `touch '${base}/recovery.signal'`])
      return startCluster({ ...cluster, data: base, port })
    },
  }
}

/** Describes a server whose role `purser` is no superuser, as in docs/going-live.md. */
type Cluster = Server & { folder: string; bin: string; url: string; adminUrl: string }
type Place = { folder: string; bin: string; data: string; port: number }

/**
 * Starts an empty database server.
 * @param settings returns lines of postgresql.conf.
 * @param encoding holds the options of initdb for the encoding.
 */
export async function newCluster(
  settings: (folder: string) => string[] = () => [],
  encoding: string[] = ['--encoding=UTF8'],
): Promise<Cluster> {
  const bin = process.env.POSTGRES_BIN ?? debianPrograms()
  const folder = mkdtempSync(join(tmpdir(), 'purser-cluster-'))
  folders.push(folder)
  const [data, wal] = [join(folder, 'data'), join(folder, 'wal')]
  mkdirSync(wal)
  const { uid, gid } = account()
  if (uid !== undefined) for (const path of [folder, wal]) chownSync(path, uid, gid!)
  const place = { folder, bin, data, port: await freePort() }
  run(place, 'initdb', [`--pgdata=${data}`, '--username=postgres', '--auth=trust', ...encoding])
  const lines = [`port = ${place.port}`, `unix_socket_directories = ''`, ...settings(folder)]
  appendFileSync(join(data, 'postgresql.conf'), lines.map((line) => `${line}\n`).join(''))
  const cluster = startCluster(place)
  return cluster
}

function createDatabase(cluster: Cluster): void {
  createRole(cluster)
  run(cluster, 'psql', [cluster.adminUrl, '-c', 'create database purser owner purser'])
}

const createRole = (cluster: Cluster) =>
  run(cluster, 'psql', [cluster.adminUrl, '-c', 'create role purser login'])

function startCluster(place: Place): Cluster {
  const { folder, bin, data, port } = place
  const control = (...args: string[]) =>
    run(place, 'pg_ctl', [`--pgdata=${data}`, '--wait', ...args])
  control('start', `--log=${join(folder, 'log')}`)
  const url = `postgres://purser@127.0.0.1:${port}/purser`
  return {
    folder,
    bin,
    url,
    adminUrl: `postgres://postgres@127.0.0.1:${port}/postgres`,
    settings: { DATABASE_URL: url },
    stop: () => control('stop', '--mode=fast'),
  }
}

/** Tells whether Debian's PostgreSQL is installed. */
export const hasPrograms = (): boolean => existsSync(DEBIAN) && readdirSync(DEBIAN).length > 0

function debianPrograms(): string {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).toSorted((a, b) => +a - +b) : []
  const newest = versions.at(-1)
  if (newest === undefined)
    throw new Error(`RESTORE_METHOD=${chosen} needs an installed PostgreSQL`)
  return join(DEBIAN, newest, 'bin')
}

/** Runs the server as another user, because PostgreSQL refuses to run as root. */
function account(): { uid?: number; gid?: number } {
  if (userInfo().uid !== 0) return {}
  const [, , uid, gid] = /^postgres:.*$/m.exec(readFileSync('/etc/passwd', 'utf8'))![0].split(':')
  return { uid: Number(uid), gid: Number(gid) }
}

function run({ bin, folder }: { bin: string; folder: string }, program: string, args: string[]) {
  const file = existsSync(join(bin, program)) ? join(bin, program) : program
  const { status, stderr } = spawnSync(file, args, {
    ...account(),
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}`)
}
