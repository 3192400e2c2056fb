import pino, { type LoggerOptions } from 'pino'
import { readBy } from '../../shared/config/secrets.ts'
import { LOG_DESTINATION } from '../../shared/process/logOptions.ts'
import { runService } from '../../shared/process/service.ts'
import { warnWhenAway } from '../../sql/checkDatabase.ts'
import { databaseUrl } from '../../sql/databaseUrl.ts'
import { startSmtp } from './server.ts'

const openLog = (options: LoggerOptions) => pino(options, pino.destination(LOG_DESTINATION))

await runService(
  process,
  { name: 'smtp', openLog, secrets: () => readBy('smtp') },
  async (config, log) => {
    const url = databaseUrl(config)
    await warnWhenAway(url, log)
    const smtp = await startSmtp(config, url, log)
    log.info({ port: smtp.port, httpPort: smtp.httpPort }, 'listening')
    return smtp
  },
)
