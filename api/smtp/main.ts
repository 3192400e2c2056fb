import { runService } from '../../shared/service.ts'
import { databaseUrl } from '../../sql/databaseUrl.ts'
import { startSmtp } from './server.ts'

await runService(process, { name: 'smtp' }, async (config, log) => {
  const smtp = await startSmtp(config, databaseUrl(config), log)
  log.info({ port: smtp.port }, 'listening')
  return smtp
})
