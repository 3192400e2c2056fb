import pino from 'pino'
import { ConfigError, parseConfig } from '../shared/config/config.ts'
import { readBy } from '../shared/config/secrets.ts'
import { logOptions } from '../shared/process/logOptions.ts'
import { storeGivenKeys } from './account/bootstrap.ts'
import { checkDatabase } from './checkDatabase.ts'
import { databaseUrl } from './databaseUrl.ts'
import { migrate } from './migrate.ts'

try {
  const config = parseConfig(process.env, readBy('migrate'))
  const url = databaseUrl(config)
  await checkDatabase(url)
  const applied = await migrate(url)
  const keys = await storeGivenKeys(url, config)
  pino(logOptions('migrate', config.logLevel)).info({ applied, keys }, 'the database is up to date')
} catch (error) {
  const expected = error instanceof ConfigError
  process.stderr.write(`${expected ? error.message : `migrate failed: ${String(error)}`}\n`)
  process.exitCode = expected ? 78 : 1
}
