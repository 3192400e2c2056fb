/** Tests when a worker process starts without a check of its master keys, and when it refuses to start. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { type Config, ConfigError } from '../../shared/config/config.ts'
import { masterKey } from '../../shared/vault/envelope.ts'
import { startKeyring, startSigningKeys } from '../../workers/keyring.ts'
import { whileFailing } from '../support/database/failingStatements.ts'
import { silentLog } from '../support/logs.ts'
import { startTestService, type TestService } from '../support/service.ts'

const AWAY = 'postgres://nobody@127.0.0.1:1/purser'
let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

/** Returns the configuration of a process that lacks the master key of the service. */
const withoutKey = (): Config => ({
  ...service.config,
  masterKeys: [masterKey('other', randomBytes(32))],
})

test('a process that sends mail starts while the database is away, and checks its master keys at their first use', async () => {
  const { body } = await service.platform.post('/v0/platform/domains', { domain: 'keys.test' })
  expect(body.domain).toBe('keys.test')
  const { url, pool } = service.database
  const keyring = await startSigningKeys(withoutKey(), AWAY)
  await expect(keyring(pool)).rejects.toThrow(ConfigError)
  await expect(startSigningKeys(withoutKey(), url)).rejects.toThrow(ConfigError)
})

test('a process that delivers webhooks starts while the database is away, but not if it cannot encrypt a stored secret', async () => {
  const { url, pool } = service.database
  const keyring = await startKeyring(service.config, AWAY, silentLog)
  expect(await keyring(pool)).toBeDefined()
  await whileFailing('update seller_endpoints', async () => {
    await startKeyring(service.config, url, silentLog)
  })
  const agent = await service.newAgent()
  await pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
     values ('se_1', $1, 'x', 'x', 1, 'base-sepolia', 'http://127.0.0.1:1/', 'whsec_1')`,
    [agent.project.id],
  )
  await pool.query('alter table seller_endpoints add constraint no_row check (false) not valid')
  await expect(startKeyring(service.config, url, silentLog)).rejects.toThrow('no_row')
})
