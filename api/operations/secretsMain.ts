import { randomBytes } from 'node:crypto'
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts'
import { generateKey } from '../../shared/apiKey.ts'
import { ConfigError } from '../../shared/config/config.ts'
import { SECRETS_OF } from '../../shared/config/secrets.ts'

const USAGE =
  'usage: bun run secrets:new, bun run secrets:new FILE for a new file, or bun run secrets:new --units FOLDER'

/**
 * `bun run secrets:new` prints a new value for each secret of a production `.env`. With the argument FILE, the command
 * writes the secrets to this file. With `--units FOLDER`, it writes the files that the units of deploy/systemd read.
 * Each of these files holds only the secrets of one part. The option also writes `database.sql`, which creates the
 * database. The command never overwrites a file, because nobody can make lost keys again.
 */
function create(): void {
  const { file, folder } = readArguments()
  const { values, wallet } = newSecrets()
  if (folder !== undefined) writeAll(unitFiles(resolve(folder), values))
  else if (file !== undefined) writeAll([[resolve(file), textOf(values)]])
  else process.stdout.write(textOf(values))
  process.stderr.write(
    `Keep these apart from the database and its backups. The gas wallet ${wallet} needs ether on the chain of RPC_URL.\n`,
  )
}

function readArguments(): { file?: string | undefined; folder?: string | undefined } {
  try {
    const { values, positionals } = parseArgs({
      options: { units: { type: 'string' } },
      allowPositionals: true,
    })
    const [file] = positionals
    const given = positionals.length + (values.units === undefined ? 0 : 1)
    if (given <= 1 && values.units !== '') return { file, folder: values.units }
  } catch {
    // The command line has an unknown option, so the command shows its usage.
  }
  throw new ConfigError(USAGE)
}

/** Writes several files. If one of them exists already, the function writes none. */
function writeAll(files: readonly (readonly [file: string, text: string])[]): void {
  for (const [file] of files) {
    if (existsSync(file)) throw new ConfigError(`${file} exists; name a new file`)
  }
  for (const [file, text] of files) {
    try {
      writeFileSync(file, text, { mode: 0o600, flag: 'wx' })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      throw new ConfigError(`${file} cannot be written (${code}); name another`)
    }
  }
}

type Secrets = Record<string, string>

/** Returns the files for the systemd units: `common.env` for all parts, and one file for each part that has secrets. */
function unitFiles(folder: string, values: Secrets): [file: string, text: string][] {
  const { POSTGRES_PASSWORD: password, NODE_ENV: environment } = values
  const common = {
    NODE_ENV: environment!,
    DATABASE_URL: `postgres://purser:${password}@127.0.0.1/purser`,
    DATA_DIR: '/var/lib/purser',
  }
  const more: Record<string, readonly string[]> = {
    migrate: ['BOOTSTRAP_PLATFORM_KEY'],
    api: ['METRICS_TOKEN'],
  }
  const parts = Object.entries(SECRETS_OF).map(([part, names]): [string, Secrets] => {
    const own = [...names, ...(more[part] ?? [])].filter((name) => name in values)
    const isProgram = part === 'api' || part === 'smtp' || part === 'migrate'
    return [
      isProgram ? part : `workers-${part}`,
      Object.fromEntries(own.map((name) => [name, values[name]!])),
    ]
  })
  return [
    [join(folder, 'database.sql'), databaseSql(password!)],
    ...[['common', common] as const, ...parts].map(([name, own]): [string, string] => [
      join(folder, `${name}.env`),
      textOf(own),
    ]),
  ]
}

/**
 * Returns the SQL that creates the database and raises its limit on connections, because all parts on one machine need
 * about 200 connections, but PostgreSQL allows 100 by default. The SQL names the encoding, because the server's own
 * encoding depends on the locale of its installation.
 */
const databaseSql = (password: string): string =>
  [
    `create role purser login password '${password}';`,
    "create database purser owner purser encoding 'UTF8' locale 'C.UTF-8' template template0;",
    'alter system set max_connections = 300;',
    '',
  ].join('\n')

const textOf = (values: Secrets): string =>
  Object.entries(values)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('')

function newSecrets(): { values: Secrets; wallet: string } {
  const year = new Date().getUTCFullYear()
  const named = () => `${year}:${randomBytes(32).toString('base64')}`
  const settlementKey = generatePrivateKey()
  const wallet = privateKeyToAddress(settlementKey)
  const values = {
    NODE_ENV: 'production',
    MASTER_KEYS: named(),
    RECEIPT_SIGNING_KEYS: named(),
    SETTLEMENT_KEYS: settlementKey,
    METRICS_TOKEN: randomBytes(24).toString('hex'),
    POSTGRES_PASSWORD: randomBytes(24).toString('hex'),
    BOOTSTRAP_PLATFORM_KEY: generateKey('platform'),
  }
  return { values, wallet }
}

try {
  create()
} catch (error) {
  if (!(error instanceof ConfigError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 78
}
