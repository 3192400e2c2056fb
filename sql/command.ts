import { type Config, ConfigError } from '../shared/config/config.ts'
import { checkDatabase } from './checkDatabase.ts'
import { databaseUrl } from './databaseUrl.ts'
import { createPool, type Pool } from './db.ts'
import { pendingMigrations } from './migrate.ts'

/** Runs a command line program on the service's database. @throws {ConfigError} if migrations are pending. */
export async function onDatabase(
  config: Config,
  { name, size = 1 }: { name: string; size?: number },
  work: (pool: Pool) => Promise<void>,
): Promise<void> {
  const url = databaseUrl(config)
  await checkDatabase(url)
  const pool = createPool({ url, size, name })
  try {
    const pending = await pendingMigrations(pool)
    if (pending.length > 0) {
      throw new ConfigError(`the database lacks ${pending.length} migrations: bun run migrate`)
    }
    await work(pool)
  } finally {
    await pool.end()
  }
}
