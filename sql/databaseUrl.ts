import { type Config, ConfigError } from '../shared/config/config.ts'
import { runningEmbeddedUrl } from './embedded/embeddedPostgres.ts'

/**
 * Returns the database URL: `DATABASE_URL`, or the URL of the embedded PostgreSQL server that runs on DATA_DIR.
 * @throws {ConfigError} if DATABASE_URL is missing and no embedded PostgreSQL server runs on DATA_DIR.
 */
export function databaseUrl(config: Config): string {
  const url = config.databaseUrl ?? runningEmbeddedUrl(config.dataDir)
  if (url === null) {
    throw new ConfigError(
      'DATABASE_URL: it is missing, and no embedded database runs on DATA_DIR (npm start starts one)',
    )
  }
  return url
}
