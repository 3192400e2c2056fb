/**
 * Makes a physical backup of the running embedded PostgreSQL. It contains the files of PostgreSQL, and the WAL that
 * makes them consistent (PostgreSQL 18 documentation, §25.3.4). The service makes the backup itself, because the npm
 * package of PostgreSQL contains neither pg_basebackup nor pg_dump.
 */

import { constants, existsSync } from 'node:fs'
import { copyFile, mkdir, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../../shared/errorCode.ts'
import { singleConnection } from '../connectionTo.ts'

/** Lists directories that a PostgreSQL server fills again at its start. They are empty in the backup. */
const EMPTY = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
])
/**
 * Matches files that the backup leaves out: files of the running PostgreSQL server, and files that the backup writes
 * last.
 */
const EXCLUDED =
  /^(postmaster\.(pid|opts)|current_logfiles|.*\.tmp|backup_label.*|tablespace_map.*|backup_manifest|pg_internal\.init.*|pgsql_tmp.*)$/
const CONTROL = join('global', 'pg_control')
const WAL_FILE = /^[0-9A-F]{24}$/
const HISTORY_FILE = /^[0-9A-F]{8}\.history$/
const COPIES_AT_ONCE = 8
const CONTROL_READS_MAX = 100

/**
 * Copies a running cluster into a new folder. A PostgreSQL server that starts in this folder recovers the data as they
 * were at the end of the copy.
 * @param url is the database URL of a superuser on the running server.
 * @param cluster is the server's data directory.
 * @param target is the folder for the copy. The target folder must not exist yet.
 */
export async function backUpCluster({
  url,
  cluster,
  target,
}: {
  url: string
  cluster: string
  target: string
}): Promise<void> {
  const client = singleConnection({ connectionString: url, application_name: 'purser backup' })
  await client.connect()
  try {
    // Because of the replication slot, PostgreSQL keeps the WAL that the backup needs until the database connection
    // ends.
    await client.query('select pg_create_physical_replication_slot($1, true, true)', [
      `purser_backup_${process.pid}`,
    ])
    await client.query(`select pg_backup_start('purser', true)`)
    await mkdir(target, { mode: 0o700 })
    await copyFiles(cluster, target, await listFiles(cluster, target))
    await writeSynced(join(target, CONTROL), await readSteadily(join(cluster, CONTROL)))
    const { rows } = await client.query<{
      first: string
      last: string
      label: string
      map: string
    }>(
      `select substring(labelfile from 'START WAL LOCATION: .* \\(file ([0-9A-F]{24})\\)') as first,
              pg_walfile_name(lsn) as last, labelfile as label, spcmapfile as map
       from pg_backup_stop(false)`,
    )
    const { first, last, label, map } = rows[0]!
    if (map !== '') throw new Error('tablespaces outside the data directory are not backed up')
    const wal = (await readdir(join(cluster, 'pg_wal'))).filter(
      (name) => HISTORY_FILE.test(name) || (WAL_FILE.test(name) && name >= first && name <= last),
    )
    await copyFiles(
      cluster,
      target,
      wal.map((name) => join('pg_wal', name)),
    )
    await writeSynced(join(target, 'backup_label'), Buffer.from(label))
  } finally {
    await client.end()
  }
}

/**
 * Lists the relative paths of the cluster files that the backup copies, and creates the directories in the target
 * folder.
 */
async function listFiles(cluster: string, target: string, inside = ''): Promise<string[]> {
  const files: string[] = []
  for (const entry of await readdir(join(cluster, inside), { withFileTypes: true })) {
    const path = join(inside, entry.name)
    if (EXCLUDED.test(entry.name) || path === CONTROL) continue
    if (!entry.isDirectory()) {
      files.push(path)
      continue
    }
    await mkdir(join(target, path), { mode: 0o700 })
    if (!EMPTY.has(path)) files.push(...(await listFiles(cluster, target, path)))
  }
  return files
}

/**
 * Copies files of a running cluster. Meanwhile, PostgreSQL may delete or extend a file. After a restore, PostgreSQL
 * repeats such changes from the WAL.
 */
async function copyFiles(from: string, to: string, paths: readonly string[]): Promise<void> {
  const left = [...paths]
  const copyOn = async () => {
    for (let path = left.pop(); path !== undefined; path = left.pop()) {
      try {
        await copyFile(join(from, path), join(to, path), constants.COPYFILE_FICLONE)
      } catch (error) {
        if (errorCode(error) !== 'ENOENT') throw error
        // If the folder of the missing file is missing too, the backup fails. Otherwise it would lack this file without
        // notice.
        if (!existsSync(dirname(join(to, path)))) throw error
        continue
      }
      await using file = await open(join(to, path), 'r+')
      await file.chmod(0o600)
      await file.sync()
    }
  }
  await Promise.all(Array.from({ length: COPIES_AT_ONCE }, copyOn))
}

/**
 * Reads a file until two reads return the same bytes, because the PostgreSQL server may overwrite the file during a
 * read.
 */
async function readSteadily(file: string): Promise<Buffer> {
  let before = await readFile(file)
  for (let n = 0; n < CONTROL_READS_MAX; n++) {
    const now = await readFile(file)
    if (now.equals(before)) return now
    before = now
  }
  throw new Error(`two reads of ${file} never agree`)
}

async function writeSynced(file: string, bytes: Buffer): Promise<void> {
  await writeFile(file, bytes, { mode: 0o600, flush: true })
}
