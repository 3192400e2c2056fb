import { ConfigError, parseConfig } from '../../shared/config.ts'
import { createSignInLink, LINK_MINUTES } from '../../sql/consoleSessions.ts'
import { databaseUrl } from '../../sql/databaseUrl.ts'
import { createPool, isDatabaseUnavailable } from '../../sql/db.ts'
import { pendingMigrations } from '../../sql/migrate.ts'
import { signInUrl } from './signInUrl.ts'

/** `bun run console:login`: prints a link that signs its holder in to the console, once. */
async function login(): Promise<void> {
  const config = parseConfig(process.env)
  const pool = createPool({
    url: databaseUrl(config),
    size: 1,
    name: 'purser console login',
    onError: () => {},
  })
  try {
    const pending = await pendingMigrations(pool)
    if (pending.length > 0) {
      throw new ConfigError(`the database lacks ${pending.length} migrations: bun run migrate`)
    }
    const url = signInUrl(config.http.baseUrl, await createSignInLink(pool))
    process.stdout.write(`${url}\nGood once, for ${LINK_MINUTES} minutes.\n`)
  } finally {
    await pool.end()
  }
}

try {
  await login()
} catch (error) {
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  const expected = error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : `no link was made: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
