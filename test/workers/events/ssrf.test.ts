import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Receiver, startReceiver } from '../../support/events/receiver.ts'
import {
  hurry,
  sendEvent,
  startWebhookService,
  waitForAttempts,
  waitForEnd,
} from '../../support/events/webhooks.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

/**
 * Maps each host name to a list of DNS answers, one for each lookup. After the end of the list, each lookup gets the
 * last answer again. An empty list means that the name does not exist.
 */
const names = new Map<string, string[][]>()
const lookups: string[] = []

let service: TestService
let agent: Agent
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startWebhookService({
    env: { ALLOW_PRIVATE_NETWORKS: 'false' },
    resolve: (hostname, answer) => {
      lookups.push(hostname)
      const answers = names.get(hostname) ?? [[]]
      const addresses = answers.length > 1 ? answers.shift()! : answers[0]!
      if (addresses.length === 0) {
        return answer(Object.assign(new Error('unknown'), { code: 'ENOTFOUND' }), [])
      }
      const family = (address: string) => (address.includes(':') ? 6 : 4)
      answer(
        null,
        addresses.map((address) => ({ address, family: family(address) })),
      )
    },
  })
  agent = await service.newAgent()
})
afterAll(async () => {
  await service[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

const LITERALS = [
  '127.0.0.1',
  '127.1',
  '127.255.255.254',
  '0x7f.1',
  '0x7f000001',
  '2130706433',
  '017700000001',
  '0177.0.0.1',
  '127.0.0.1.',
  '１２７.０.０.１',
  '127。0。0。1',
  '0',
  '0.0.0.0',
  '10.0.0.1',
  '100.64.0.1',
  '100.100.100.200',
  '168.63.129.16',
  '169.254.169.254',
  '0xa9fea9fe',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.192',
  '192.168.0.1',
  '198.18.0.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::ffff:169.254.169.254]',
  '[::127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2001:0:1::1]',
  '[2001:db8::1]',
  '[2002:7f00:1::]',
  '[3fff::1]',
  '[fe80::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[ff02::1]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'a.localhost',
  'printer.local',
  'metadata.google.internal',
  'metadata',
]

const RESOLVED = [
  ['127.0.0.1'],
  ['10.1.2.3'],
  ['169.254.169.254'],
  ['0.0.0.0'],
  ['::1'],
  ['::ffff:127.0.0.1'],
  ['fe80::1%lo'],
  ['fd00::1'],
  ['64:ff9b::7f00:1'],
  ['8.8.8.8', '127.0.0.1'],
  ['2606:4700:4700::1111', '::1'],
]

const put = (more: Record<string, unknown>) =>
  agent.put('/v0/sellers/endpoints', {
    urlPattern: 'https://api.example/paid',
    priceUsdc: '0.01',
    ...more,
  })

/**
 * Registers an endpoint with a public webhook URL, and returns the endpoint object with its URL replaced by the given
 * URL.
 */
async function smuggled(webhookUrl: string) {
  const { body } = await put({
    urlPattern: `https://api.example/${crypto.randomUUID()}`,
    webhookUrl: 'https://hooks.example/',
  })
  return { endpointId: body.endpointId as string, webhookUrl }
}

test.each(LITERALS)(
  'the host %s is refused when an endpoint is registered and when an event is delivered',
  async (host) => {
    const url = `http://${host}:${receiver.port}/hook`
    for (const field of ['urlPattern', 'webhookUrl']) {
      const { status, body } = await put({ [field]: url })
      expect([status, body.error]).toEqual([400, 'bad_request'])
      expect(body.message).toBe(
        `${field} must be reachable from the public internet: address is not public`,
      )
    }
    const id = await sendEvent(service.database, agent, await smuggled(url))
    const { attempts, ...delivery } = await waitForEnd(agent, id)
    expect(delivery).toMatchObject({ status: 'aborted', attemptCount: 1, nextAttemptAt: null })
    expect(attempts).toMatchObject([
      { status: null, error: 'address is not public', response: null },
    ])
    expect(receiver.requests).toHaveLength(0)
  },
)

test.each([
  ['urlPattern', 'https://api.example:22/', 'port is not allowed'],
  ['webhookUrl', 'http://api.example:25/', 'port is not allowed'],
])(
  'the field %s of an endpoint refuses the URL %s with the reason: %s',
  async (field, url, reason) => {
    expect((await put({ [field]: url })).body.message).toEndWith(reason)
  },
)

describe('no webhook request goes to a host name that resolves to a private address', () => {
  test.each(RESOLVED)(
    'no connection is opened if the host name of a webhook URL resolves to the address %p',
    async (...addresses) => {
      const host = `n${names.size}.example`
      names.set(host, [addresses])
      const webhookUrl = `http://${host}:${receiver.port}/hook`
      expect((await put({ webhookUrl })).status).toBeLessThan(300)
      const id = await sendEvent(service.database, agent, await smuggled(webhookUrl))
      expect(await waitForEnd(agent, id)).toMatchObject({
        status: 'aborted',
        attempts: [{ status: null, error: 'address is not public' }],
      })
      expect(receiver.requests).toHaveLength(0)
    },
  )

  test('the host name of a webhook URL is resolved once for each attempt, and a private IP address aborts the delivery', async () => {
    names.set('rebinding.example', [[], ['127.0.0.1'], ['8.8.8.8']])
    const webhookUrl = `http://rebinding.example:${receiver.port}/hook`
    const id = await sendEvent(service.database, agent, await smuggled(webhookUrl))
    const first = await waitForAttempts(agent, id, 1)
    expect(first).toMatchObject({ status: 'pending', attempts: [{ error: 'ENOTFOUND' }] })
    await hurry(service.database, id)
    expect(await waitForEnd(agent, id)).toMatchObject({
      status: 'aborted',
      attempts: [{ error: 'ENOTFOUND' }, { error: 'address is not public' }],
    })
    expect(lookups.filter((name) => name === 'rebinding.example')).toHaveLength(2)
    expect(receiver.requests).toHaveLength(0)
  })
})

test('the verification of an endpoint sends no request to a private IP address', async () => {
  names.set('inside.example', [['127.0.0.1']])
  const { body } = await put({ urlPattern: `http://inside.example:${receiver.port}/` })
  const verification = await waitFor('a verdict', async () => {
    const got = await agent.get(`/v0/sellers/endpoints/${body.endpointId}`)
    return got.body.verification.status === 'pending' ? null : got.body.verification
  })
  expect(verification).toMatchObject({ status: 'failed', detail: 'address is not public' })
  expect(receiver.requests).toHaveLength(0)
})
