import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** Lists the programs of a PostgreSQL cluster, at the paths where Debian installs them. */
export type Tools = { patroni: string; etcd: string; haproxy: string; postgresBin: string }

const INSTALL =
  'apt-get install --no-install-recommends patroni python3-etcd etcd-server haproxy postgresql'
const POSTGRES_ROOT = '/usr/lib/postgresql'
const VERSION_MIN = 15

/**
 * Finds the programs that a PostgreSQL cluster needs. @throws {Error} if programs are missing, with the command that
 * installs them.
 */
export function findTools(): Tools {
  const [patroni, etcd, haproxy] = [
    '/usr/bin/patroni',
    '/usr/bin/etcd',
    '/usr/sbin/haproxy',
  ] as const
  const version = existsSync(POSTGRES_ROOT)
    ? Math.max(0, ...readdirSync(POSTGRES_ROOT).map(Number).filter(Number.isInteger))
    : 0
  const missing: string[] = [patroni, etcd, haproxy].filter((path) => !existsSync(path))
  if (version < VERSION_MIN) missing.push(`PostgreSQL ${VERSION_MIN} or newer`)
  if (missing.length > 0) {
    throw new Error(`test:cluster needs ${missing.join(', ')}; on Debian: ${INSTALL}`)
  }
  return { patroni, etcd, haproxy, postgresBin: join(POSTGRES_ROOT, String(version), 'bin') }
}
