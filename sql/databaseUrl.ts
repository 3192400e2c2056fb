import { type Config, ConfigError } from '../shared/config/config.ts'
import { runningEmbeddedUrl } from './embedded/embeddedPostgres.ts'

/**
 * Returns the database URL: `DATABASE_URL`, or the URL of the embedded server on this data directory.
 * @throws {ConfigError} if DATABASE_URL is missing and no embedded server runs.
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
