import { runService } from '../../shared/service.ts'
import { warnWhenAway } from '../../sql/checkDatabase.ts'
import { databaseUrl } from '../../sql/databaseUrl.ts'
import { startSmtp } from './server.ts'

await runService(process, { name: 'smtp' }, async (config, log) => {
  const url = databaseUrl(config)
  await warnWhenAway(url, log)
  const smtp = await startSmtp(config, url, log)
  log.info({ port: smtp.port }, 'listening')
  return smtp
})
