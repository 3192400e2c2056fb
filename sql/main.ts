import pino from 'pino'
import { ConfigError, parseConfig } from '../shared/config/config.ts'
import { logOptions } from '../shared/process/logOptions.ts'
import { checkDatabase } from './checkDatabase.ts'
import { databaseUrl } from './databaseUrl.ts'
import { migrate } from './migrate.ts'

try {
  const config = parseConfig(process.env)
  const url = databaseUrl(config)
  await checkDatabase(url)
  const applied = await migrate(url)
  pino(logOptions('migrate', config.logLevel)).info({ applied }, 'the database is up to date')
} catch (error) {
  const expected = error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : `migrate failed: ${String(error)}`}\n`)
  process.exitCode = expected ? 78 : 1
}
