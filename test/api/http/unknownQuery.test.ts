/** Tests that a misspelt query parameter causes an error and not an unfiltered response. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

test('a request with an unknown query parameter gets status 400 and a message that names the most similar known parameter', async () => {
  for (const [path, shown, nearest] of [
    ['/v0/messages?label=unread', 'label', 'labels'],
    ['/v0/messages?limit=2&Labels=unread', 'Labels', 'labels'],
    ['/v0/messages?page_token=x', 'page_token', 'pageToken'],
    ['/v0/messages/wait?timout=1', 'timout', 'timeout'],
    ['/v0/threads?limits=2', 'limits', 'limit'],
    ['/v0/webhooks/deliveries?endpoint=se_1', 'endpoint', 'endpointId'],
    ['/v0/logs?categroy=vault', 'categroy', 'category'],
    ['/v0/payments/activity?day=3', 'day', 'days'],
    ['/v0/vault?expiringwithin=7d', 'expiringwithin', 'expiringWithin'],
  ] as const) {
    const { status, body } = await agent.get(path)
    expect([path, status, body.error]).toEqual([path, 400, 'bad_request'])
    expect(body.message).toStartWith(
      `The query must not hold "${shown}": the nearest parameter is ${nearest}, of `,
    )
  }
})

test('if an operation has no parameters, the error for an unknown query parameter says that the operation has none', async () => {
  const { status, body } = await agent.get('/v0/whoami?limit=1')
  expect([status, body.message]).toEqual([
    400,
    'The query must not hold "limit": it takes no parameters',
  ])
  const sent = await agent.post('/v0/messages/send?dryRun=true', {
    to: ['a@example.com'],
    subject: 's',
    text: 't',
  })
  expect(sent.status).toBe(400)
  expect((await agent.get('/v0/messages')).body.count).toBe(0)
})

test('the error about an unknown parameter shows only the start of its name, and a caller without an API key learns nothing about unknown parameters', async () => {
  const { status, body } = await agent.get(`/v0/messages?${'a'.repeat(5_000)}=1`)
  expect([status, body.message.length < 250]).toEqual([400, true])
  const response = await fetch(`${service.url}/v0/messages?label=unread`)
  expect(response.status).toBe(401)
})

test('every documented query parameter is accepted, and public pages accept any query parameter', async () => {
  const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as any
  const refused: string[] = []
  for (const [path, { get }] of Object.entries<any>(document.paths)) {
    if (get === undefined || get.security.length === 0 || /platform/.test(path)) continue
    const names = (get.parameters ?? []).filter((parameter: any) => parameter.in === 'query')
    const query = [...names.map(({ name }: any) => `${name}=`), 'nothing=1'].join('&')
    const asked = `${path.replace(/\{\w+\}/g, 'x')}?${query}`
    const answer = await agent.get(asked)
    // Some operations accept only the platform key, so the test repeats these calls with the platform key.
    const { body } = answer.status === 403 ? await service.platform.get(asked) : answer
    refused.push(body.message.slice(0, 35))
  }
  expect(refused.length).toBeGreaterThan(20)
  expect(new Set(refused)).toEqual(new Set(['The query must not hold "nothing": ']))
  for (const path of ['/healthz?a=b', '/?utm_source=x', '/docs?a=b', '/openapi.json?a=b']) {
    expect([path, (await fetch(service.url + path)).status]).toEqual([path, 200])
  }
})

test('a request that sets a query parameter twice gets status 400', async () => {
  for (const path of ['/v0/messages?labels=a&labels=b', '/v0/threads?limit=1&limit=2']) {
    const { status, body } = await agent.get(path)
    expect([status, body.message]).toEqual([
      400,
      `The query must not set ${path.includes('labels') ? 'labels' : 'limit'} twice`,
    ])
  }
})
