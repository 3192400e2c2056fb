import pino, { type Logger, type LoggerOptions } from 'pino'
import { readBy } from '../shared/config/secrets.ts'
import { LOG_DESTINATION } from '../shared/process/logOptions.ts'
import { runService } from '../shared/process/service.ts'
import { warnWhenAway } from '../sql/checkDatabase.ts'
import { databaseUrl } from '../sql/databaseUrl.ts'
import { checkMasterKeys } from '../sql/keyring/keyring.ts'
import { startApi } from './http/server.ts'

const openLog = (options: LoggerOptions) => pino(options, pino.destination(LOG_DESTINATION))

await runService(
  process,
  { name: 'api', openLog, secrets: () => readBy('api') },
  async (config, log) => {
    const url = databaseUrl(config)
    await warnWhenAway(url, log)
    await checkMasterKeys(url, config)
    if (config.production) warnOfBaseUrl(config.http.baseUrl, log)
    const api = startApi(config, url, log)
    log.info({ port: api.port, baseUrl: config.http.baseUrl }, 'listening')
    return api
  },
)

/**
 * Warns if other machines cannot reach BASE_URL over TLS, because receipts, links in mail and sign-in links contain
 * this URL.
 */
function warnOfBaseUrl(baseUrl: string, log: Logger): void {
  const { protocol, hostname } = new URL(baseUrl)
  const isHere = /^(?:localhost|127\.[\d.]+|\[::1?\]|0\.0\.0\.0)$/.test(hostname)
  if (protocol === 'https:' && !isHere) return
  log.warn({ baseUrl }, 'BASE_URL: must be the public https URL of this service in production')
}
