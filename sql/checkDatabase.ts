import { AwayError, ConfigError } from '../shared/config/configError.ts'
import { isDatabaseUnavailable } from '../shared/process/databaseAway.ts'
import { connectionTo, singleConnection } from './connectionTo.ts'

/**
 * Sets the lowest version of PostgreSQL that the service accepts (version 15), in the format of `server_version_num`.
 */
const VERSION_MIN = 150_000
const TIMEOUT_MS = 5_000

/**
 * Connects to the database once at the start of a process, so that a wrong `DATABASE_URL` fails with one clear line.
 * @throws {ConfigError} if the PostgreSQL server is unreachable, refuses the login, is too old, or lacks the database.
 */
export async function checkDatabase(databaseUrl: string): Promise<void> {
  const { host, username, pathname } = new URL(databaseUrl)
  const client = singleConnection({
    ...connectionTo(databaseUrl, 'purser start'),
    connectionTimeoutMillis: TIMEOUT_MS,
    query_timeout: TIMEOUT_MS,
  })
  const at = host === '' ? 'localhost' : host
  try {
    await client.connect()
    const { rows } = await client.query<{ version: string; number: number }>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::int as number`,
    )
    const { version, number } = rows[0]!
    if (number < VERSION_MIN) {
      throw new ConfigError(
        `DATABASE_URL: PostgreSQL ${version} at ${at} is too old; use version 15 or newer`,
      )
    }
  } catch (error) {
    throw explain(error, { at, user: username, database: pathname.slice(1) })
  } finally {
    await client.end().catch(() => {})
  }
}

function explain(
  error: unknown,
  { at, user, database }: { at: string; user: string; database: string },
): unknown {
  const { code, message } = error as { code?: string; message: string }
  // The SQLSTATE class 28 means that PostgreSQL refuses the login. The SQLSTATE 3D000 means that the database does not
  // exist.
  if (code?.startsWith('28')) {
    return new ConfigError(
      `DATABASE_URL: the database at ${at} refuses the login of user "${user}" (${message}); correct user or password`,
    )
  }
  if (code === '3D000') {
    return new ConfigError(
      `DATABASE_URL: there is no database "${database}" at ${at}; create it, or name another`,
    )
  }
  if (isDatabaseUnavailable(error)) {
    return new AwayError(
      `DATABASE_URL: no database answers at ${at} (${code ?? message}); start it, or correct the address`,
    )
  }
  return error
}

/**
 * Checks the database at the start of a service that can run without the database for a while. If the database is
 * unreachable, the function only logs a warning.
 * @throws {ConfigError} if the PostgreSQL server refuses the login, is too old, or lacks the database.
 */
export async function warnWhenAway(
  databaseUrl: string,
  log: { warn(message: string): void },
): Promise<void> {
  try {
    await checkDatabase(databaseUrl)
  } catch (error) {
    if (!(error instanceof AwayError)) throw error
    log.warn(error.message)
  }
}
