import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { generateKey } from '../../shared/apiKey.ts'
import { type Config, ConfigError } from '../../shared/config/config.ts'
import { DEFAULT_SCOPES } from '../../shared/scopes.ts'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { createPool, type Pool } from '../db.ts'
import { authenticateAll, insertPlatformKey, isKnownKey } from './keys/keys.ts'
import { createSignInLink, hasSignedIn } from './people/consoleSessions.ts'
import { AddressTakenError, createProject } from './projects/projects.ts'

export type FirstKeys = {
  platformKey: string
  projectKey: string
  /** Holds the inbox address of the project that owns the first project key. Null means that this key was revoked. */
  inboxAddress: string | null
  /**
   * Holds the token of a sign-in link to the console. It is null after the first sign-in. In production it is always
   * null, because the log would show it.
   */
  signInToken: string | null
}

/**
 * Ensures that the first platform key and the first project key exist. They come from BOOTSTRAP_PLATFORM_KEY and
 * BOOTSTRAP_PROJECT_KEY, or from an earlier start. If neither source has the keys, the service generates them and keeps
 * them in DATA_DIR.
 * @throws {ConfigError} in production if BOOTSTRAP_PLATFORM_KEY or BOOTSTRAP_PROJECT_KEY is missing.
 */
export async function bootstrap(databaseUrl: string, config: Config): Promise<FirstKeys> {
  const { platformKey, projectKey } = resolveKeys(config)
  const pool = createPool({ url: databaseUrl, size: 4, name: 'purser start' })
  try {
    await insertPlatformKey(pool, platformKey)
    await ensureProject(pool, projectKey, config)
    const [found = null] = await authenticateAll(pool, [{ key: projectKey, budget: '' }])
    const wantsLink = !config.production && !(await hasSignedIn(pool))
    return {
      platformKey,
      projectKey,
      inboxAddress: found?.identity.inboxAddress ?? null,
      signInToken: wantsLink ? await createSignInLink(pool) : null,
    }
  } finally {
    await pool.end()
  }
}

/**
 * Stores the API keys of BOOTSTRAP_PLATFORM_KEY and BOOTSTRAP_PROJECT_KEY. @returns the kinds of the stored keys:
 * `platform`, `project` or both.
 */
export async function storeGivenKeys(databaseUrl: string, config: Config): Promise<string[]> {
  const { platformKey, projectKey } = config.bootstrap
  if (platformKey === undefined && projectKey === undefined) return []
  const pool = createPool({ url: databaseUrl, size: 2, name: 'purser migrate' })
  try {
    if (platformKey !== undefined) await insertPlatformKey(pool, platformKey)
    if (projectKey !== undefined) await ensureProject(pool, projectKey, config)
  } finally {
    await pool.end()
  }
  return [
    ...(platformKey === undefined ? [] : ['platform']),
    ...(projectKey === undefined ? [] : ['project']),
  ]
}

function resolveKeys(config: Config): { platformKey: string; projectKey: string } {
  const file = join(config.dataDir, 'first-keys.json')
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const kept = text === '' ? {} : (JSON.parse(text) as Record<string, string>)
  const platformKey = config.bootstrap.platformKey ?? kept.platformKey
  const projectKey = config.bootstrap.projectKey ?? kept.projectKey
  if (platformKey !== undefined && projectKey !== undefined) return { platformKey, projectKey }
  if (config.production) {
    const missing = platformKey === undefined ? 'BOOTSTRAP_PLATFORM_KEY' : 'BOOTSTRAP_PROJECT_KEY'
    throw new ConfigError(
      `${missing}: must be set when NODE_ENV is production; keys are generated in development only`,
    )
  }
  const keys = {
    platformKey: platformKey ?? generateKey('platform'),
    projectKey: projectKey ?? generateKey('project'),
  }
  // Without fsync, a power failure could empty the file with the first API keys although the database has these keys.
  writeFileSync(`${file}.new`, `${JSON.stringify(keys, null, 2)}\n`, { mode: 0o600, flush: true })
  renameSync(`${file}.new`, file)
  return keys
}

/** Sets how many names the service tries for the first project's inbox: `agent`, `agent-2` and so on. */
const FIRST_NAMES_MAX = 1_000

async function ensureProject(pool: Pool, key: string, config: Config): Promise<void> {
  // The function never stores a known API key again, so that a revoked key stays revoked even if a file or an
  // environment variable still holds it.
  if (await isKnownKey(pool, key)) return
  for (let n = 1; n <= FIRST_NAMES_MAX; n++) {
    try {
      await createProject(pool, {
        name: 'First agent',
        purpose: 'SELLER',
        emailAddress: `${n === 1 ? 'agent' : `agent-${n}`}@${config.mailDomain}`,
        scopes: DEFAULT_SCOPES,
        // On the embedded devnet, the first project gets a recipient address, so that buyers can pay the project at
        // once. On other chains, the operator sets the recipient address of the first project.
        ...(config.chain.embeddedDevnet
          ? { payTo: DEVNET_ACCOUNTS.payTo.address, paymentsEnabled: true }
          : {}),
        key,
      })
      return
    } catch (error) {
      if (!(error instanceof AddressTakenError)) throw error
    }
  }
}
