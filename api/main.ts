import { runService } from '../shared/service.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { startApi } from './server.ts'

await runService(process, { name: 'api' }, async (config, log) => {
  const api = startApi(config, databaseUrl(config), log)
  log.info({ port: api.port, baseUrl: config.http.baseUrl }, 'listening')
  return api
})
