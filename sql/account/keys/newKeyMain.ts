import { parseArgs } from 'node:util'
import { ConfigError, parseConfig } from '../../../shared/config/config.ts'
import { parseAddress } from '../../../shared/mail/address.ts'
import { reservedAddresses } from '../../../shared/mail/reservedAddresses.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { DEFAULT_SCOPES } from '../../../shared/scopes.ts'
import { onDatabase } from '../../command.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { type NewAuditEntry, ORGANIZATION, writeAudit } from '../audit.ts'
import { AddressTakenError, createProject } from '../projects/projects.ts'
import { createPlatformKey, mayAddPlatformKey, PLATFORM_KEYS_MAX } from './platformKeys.ts'

const USAGE = 'usage: bun run keys:new --platform NAME, or bun run keys:new --project NAME'
/** Matches a valid NAME argument of `keys:new`, which has no line break. */
const NAME = /^[\p{L}\p{N} ._-]{1,100}$/u

/**
 * Runs the command `bun run keys:new`, which creates an API key. With `--platform NAME`, this is a platform key. With
 * `--project NAME`, the command creates a project with the inbox NAME@MAIL_DOMAIN, and a project key with every scope.
 * The command prints the new key only once.
 */
async function create(): Promise<void> {
  const { platform, project } = readArguments()
  const config = parseConfig(process.env, [])
  await onDatabase(config, { name: 'purser keys', size: 2 }, async (pool) => {
    const key =
      platform !== undefined
        ? await newPlatformKey(pool, platform)
        : await newProjectKey(pool, project!, config.mailDomain)
    process.stdout.write(`${key}\n`)
  })
}

function readArguments(): { platform?: string; project?: string } {
  const text = { type: 'string' } as const
  try {
    const { values } = parseArgs({ options: { platform: text, project: text } })
    const [name, ...more] = Object.values(values)
    if (name !== undefined && more.length === 0 && NAME.test(name)) return values
  } catch {
    // The command line has an unknown option, so the command shows its usage.
  }
  throw new ConfigError(USAGE)
}

/** Writes an entry about this command into the audit log of the organization. */
const record = (db: Queryable, entry: Omit<NewAuditEntry, 'outcome'>): Promise<void> =>
  writeAudit(
    db,
    { projectId: ORGANIZATION, keyPrefix: 'command line', requestId: crypto.randomUUID() },
    { ...entry, outcome: 'ok' },
  )

async function newPlatformKey(pool: Pool, name: string): Promise<string> {
  return await transaction(pool, async (db) => {
    if (!(await mayAddPlatformKey(db))) {
      throw new ConfigError(`an organization must have at most ${PLATFORM_KEYS_MAX} platform keys`)
    }
    const { created, rawKey } = await createPlatformKey(db, name)
    await record(db, { action: 'platform_key.create', subject: created.prefix, detail: name })
    return rawKey
  })
}

async function newProjectKey(pool: Pool, name: string, mailDomain: string): Promise<string> {
  const emailAddress = `${name.toLowerCase()}@${mailDomain}`
  if (!/^[\w.-]+$/.test(name) || parseAddress(emailAddress) === null) {
    throw new ConfigError('--project: must be the name of an inbox: letters, digits, ., _ and -')
  }
  if (reservedAddresses(mailDomain).includes(emailAddress)) {
    throw new ConfigError(
      `--project: must be another name: ${emailAddress} is kept for the operator`,
    )
  }
  try {
    const scopes = DEFAULT_SCOPES
    const input = { name, purpose: 'SELLER', emailAddress, scopes } as const
    const { rawKey } = await createProject(pool, input, (db, id) =>
      record(db, { action: 'project.create', subject: id, detail: emailAddress }),
    )
    process.stderr.write(`The project has the inbox ${emailAddress} and every scope.\n`)
    return rawKey
  } catch (error) {
    if (!(error instanceof AddressTakenError)) throw error
    throw new ConfigError(`--project: ${emailAddress} is taken`)
  }
}

try {
  await create()
} catch (error) {
  const expected = error instanceof ConfigError
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  process.stderr.write(`${expected ? error.message : `no key was made: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
