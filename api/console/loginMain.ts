import { ConfigError, parseConfig } from '../../shared/config/config.ts'
import { signInUrl } from '../../shared/people/signInLink.ts'
import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { createSignInLink, LINK_MINUTES } from '../../sql/account/people/consoleSessions.ts'
import { onDatabase } from '../../sql/command.ts'

/** Runs the command `bun run console:login`, which prints a one-time link that signs in the first operator. */
async function login(): Promise<void> {
  const config = parseConfig(process.env, [])
  await onDatabase(config, { name: 'purser console login' }, async (pool) => {
    const url = signInUrl(config.http.baseUrl, await createSignInLink(pool))
    process.stdout.write(`${url}\nGood once, for ${LINK_MINUTES} minutes.\n`)
  })
}

try {
  await login()
} catch (error) {
  const away = isDatabaseUnavailable(error) ? 'the database is away' : String(error)
  const expected = error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : `no link was made: ${away}`}\n`)
  process.exitCode = expected ? 78 : 1
}
