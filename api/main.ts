import pino, { type LoggerOptions } from 'pino'
import { LOG_DESTINATION } from '../shared/process/logOptions.ts'
import { runService } from '../shared/process/service.ts'
import { warnWhenAway } from '../sql/checkDatabase.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { checkMasterKeys } from '../sql/keyring/keyring.ts'
import { startApi } from './http/server.ts'

const openLog = (options: LoggerOptions) => pino(options, pino.destination(LOG_DESTINATION))

await runService(process, { name: 'api', openLog }, async (config, log) => {
  const url = databaseUrl(config)
  await warnWhenAway(url, log)
  await checkMasterKeys(url, config)
  const api = startApi(config, url, log)
  log.info({ port: api.port, baseUrl: config.http.baseUrl }, 'listening')
  return api
})
