/** Tests that a master key counts as in use while it encrypts a secret in any table. */
import { afterAll, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { Keyring, masterKey, UnknownMasterKeyError } from '../../../shared/vault/envelope.ts'
import { checkMasterKeys, keysInUse } from '../../../sql/keyring/keyring.ts'
import { rotateMasterKey } from '../../../sql/keyring/rotation.ts'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

const OLD = `old:${randomBytes(32).toString('base64')}`
const services: TestService[] = []
let service: TestService
let agent: Agent
beforeEach(async () => {
  service = await startTestService({ smtp: false, workers: false, env: { MASTER_KEYS: OLD } })
  services.push(service)
  agent = await service.newAgent()
})
afterAll(async () => {
  for (const one of services) await one[Symbol.asyncDispose]()
})

/** Stores one secret in a table that contains no other secret of the test. */
const SECRETS: Record<string, () => Promise<{ status: number }>> = {
  credential_versions: () => agent.put('/v0/vault/site', { type: 'CUSTOM', data: { n: 1 } }),
  project_webhooks: () =>
    agent.post('/v0/webhooks', { url: 'https://hooks.example.com/a', events: ['message.sent'] }),
  purse_keys: () => service.platform.post(`/v0/platform/projects/${agent.project.id}/purse`, {}),
  purchases: () =>
    agent.post('/v0/purse/quote?timeout=0', { url: 'https://api.example.com/weather' }),
}

test.each(Object.keys(SECRETS))(
  'the key of a secret in %s is in use, and a process without this key does not start',
  async (table) => {
    const { pool, url } = service.database
    expect((await SECRETS[table]!()).status).toBeLessThan(300)
    const { rows } = await pool.query(`select from ${table}`)
    expect(rows).toHaveLength(1)
    expect(await keysInUse(pool)).toEqual(['old'])
    const without = { ...service.config, masterKeys: [masterKey('new', randomBytes(32))] }
    await expect(checkMasterKeys(url, without)).rejects.toThrow('lacks "old"')
    // The secret does not count as damaged, because the master key that this process lacks could still decrypt it.
    await expect(
      rotateMasterKey(pool, new Keyring(without.masterKeys), () => {}),
    ).rejects.toBeInstanceOf(UnknownMasterKeyError)
  },
)
