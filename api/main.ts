import { runService } from '../shared/service.ts'
import { warnWhenAway } from '../sql/checkDatabase.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { checkMasterKeys } from '../sql/keyring.ts'
import { startApi } from './server.ts'

await runService(process, { name: 'api' }, async (config, log) => {
  const url = databaseUrl(config)
  await warnWhenAway(url, log)
  await checkMasterKeys(url, config)
  const api = startApi(config, url, log)
  log.info({ port: api.port, baseUrl: config.http.baseUrl }, 'listening')
  return api
})
