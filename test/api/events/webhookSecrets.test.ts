import { afterAll, beforeAll, expect, test } from 'bun:test'
import { signWebhook } from '../../../shared/events/webhookSignature.ts'
import { encryptPlainWebhookSecrets } from '../../../sql/events/webhookSecrets.ts'
import { createKeyringSource, masterKeys } from '../../../sql/keyring/keyring.ts'
import { whileLocked } from '../../support/database/whileLocked.ts'
import { startReceiver } from '../../support/events/receiver.ts'
import {
  BODY,
  register,
  sendEvent,
  startWebhookService,
  waitForEnd,
} from '../../support/events/webhooks.ts'
import { printed, startProcess } from '../../support/process/process.ts'
import type { TestService } from '../../support/service.ts'
import '../../support/long.ts'

let service: TestService
beforeAll(async () => {
  service = await startWebhookService()
})
afterAll(() => service[Symbol.asyncDispose]())

async function columns(endpointId: string) {
  const { rows } = await service.database.pool.query(
    `select webhook_secret as plain, webhook_key_id as "keyId", webhook_wrapped_key as "wrappedKey",
            webhook_ciphertext as ciphertext
     from seller_endpoints where id = $1`,
    [endpointId],
  )
  return rows[0]
}

/** Stores a webhook secret in plain text, as a release without encryption does. */
async function makePlain(endpointId: string, secret: string): Promise<void> {
  await service.database.pool.query(
    `update seller_endpoints set webhook_secret = $2, webhook_key_id = null, webhook_wrapped_key = null,
       webhook_ciphertext = null where id = $1`,
    [endpointId, secret],
  )
}

const encrypt = async () => {
  const { pool } = service.database
  const keyring = createKeyringSource(masterKeys(service.config))
  return encryptPlainWebhookSecrets(pool, await keyring(pool))
}

test('a webhook secret is stored encrypted, and every delivery is signed with it', async () => {
  const agent = await service.newAgent()
  await using receiver = await startReceiver()
  const endpoint = await register(agent, receiver.url)
  const before = await columns(endpoint.endpointId)
  expect(before).toMatchObject({ plain: null, keyId: 'development' })
  const path = `/v0/sellers/endpoints/${endpoint.endpointId}`
  const rotated = (await agent.post(`${path}/rotate-secret`)).body.webhookSecret
  const after = await columns(endpoint.endpointId)
  expect(after.ciphertext.equals(before.ciphertext)).toBe(false)
  await waitForEnd(agent, await sendEvent(service.database, agent, endpoint))
  expect(receiver.requests[0]?.headers['x-service-signature']).toBe(
    signWebhook({ secret: rotated, body: BODY }),
  )
  // A change of other fields keeps the webhook secret of an endpoint, whereas the removal of the webhook deletes the
  // secret.
  await agent.patch(path, { priceUsdc: '0.02' })
  expect(await columns(endpoint.endpointId)).toEqual(after)
  await agent.patch(path, { webhookUrl: null })
  const none = { plain: null, keyId: null, wrappedKey: null, ciphertext: null }
  expect(await columns(endpoint.endpointId)).toEqual(none)
  expect((await agent.patch(path, { webhookUrl: receiver.url })).body.webhookSecret).toMatch(
    /^whsec_/,
  )
  await agent.delete(path)
  expect(await columns(endpoint.endpointId)).toEqual(none)
})

test('a webhook secret in plain text works, survives changes of the webhook, and is encrypted by the first process that can encrypt', async () => {
  const agent = await service.newAgent()
  await using receiver = await startReceiver()
  const endpoint = await register(agent, receiver.url)
  const { endpointId } = endpoint
  const secret = 'whsec_of_old'
  const signed = async () => {
    await waitForEnd(agent, await sendEvent(service.database, agent, endpoint))
    return receiver.requests.at(-1)?.headers['x-service-signature']
  }
  await makePlain(endpointId, secret)
  const expected = signWebhook({ secret, body: BODY })
  expect(await signed()).toBe(expected)
  const changed = await agent.patch(`/v0/sellers/endpoints/${endpointId}`, { priceUsdc: '0.03' })
  expect(changed.body).not.toHaveProperty('webhookSecret')
  expect(await columns(endpointId)).toMatchObject({ plain: secret, keyId: null })

  expect(await encrypt()).toBe(1)
  expect(await columns(endpointId)).toMatchObject({ plain: null, keyId: 'development' })
  expect(await signed()).toBe(expected)
  expect(await encrypt()).toBe(0)

  // A new webhook secret is encrypted, and replaces a secret in plain text completely.
  await makePlain(endpointId, secret)
  await agent.post(`/v0/sellers/endpoints/${endpointId}/rotate-secret`)
  expect(await columns(endpointId)).toMatchObject({ plain: null, keyId: 'development' })
})

test('if several processes encrypt hundreds of plain-text webhook secrets at once, each secret is encrypted once', async () => {
  const agent = await service.newAgent()
  await service.database.pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network, webhook_url, webhook_secret)
     select 'se_' || n, $1, 'x', 'x' || n, 1, 'base-sepolia', 'http://127.0.0.1:1/', 'whsec_' || n
     from generate_series(1, 450) n`,
    [agent.project.id],
  )
  const counts = await Promise.all([encrypt(), encrypt(), encrypt()])
  expect(counts.reduce((sum, n) => sum + n, 0)).toBe(450)
  const { rows } = await service.database.pool.query(
    `select count(*)::int as plain from seller_endpoints where webhook_secret is not null`,
  )
  expect(rows[0].plain).toBe(0)
})

test('a webhook secret that another transaction has locked does not delay the encryption of the others', async () => {
  const agent = await service.newAgent()
  const [locked, other] = [
    await register(agent, 'http://127.0.0.1:1/a'),
    await register(agent, 'http://127.0.0.1:1/b'),
  ]
  for (const { endpointId } of [locked, other]) await makePlain(endpointId, 'whsec_of_old')
  const text = 'select from seller_endpoints where id = $1 for update'
  const { pool } = service.database
  expect(await whileLocked(pool, { text, values: [locked.endpointId] }, encrypt)).toBe(1)
  expect(await columns(other.endpointId)).toMatchObject({ plain: null })
  expect(await encrypt()).toBe(1)
})

test('a webhook worker encrypts webhook secrets in plain text when it starts', async () => {
  const agent = await service.newAgent()
  const { endpointId } = await register(agent, 'http://127.0.0.1:1/')
  await makePlain(endpointId, 'whsec_of_old')
  await using worker = startProcess(
    'workers/main.ts',
    {
      DATABASE_URL: service.database.url,
      DATA_DIR: service.config.dataDir,
      LOG_LEVEL: 'info',
    },
    ['--pool', 'webhooks'],
  )
  await printed(worker, /"msg":"ready"/)
  expect(worker.stdout()).toContain('"encrypted":1,"msg":"plain webhook secrets were encrypted"')
  expect(await columns(endpointId)).toMatchObject({ plain: null, keyId: 'development' })
})
