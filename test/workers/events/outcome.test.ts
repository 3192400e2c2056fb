import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { startReceiver, status } from '../../support/events/receiver.ts'
import {
  BODY,
  hurry,
  register,
  sendEvent,
  startWebhookService,
  waitForAttempts,
  waitForEnd,
  waitForNoJob,
} from '../../support/events/webhooks.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

const signature = (secret: string) =>
  `sha256=${createHmac('sha256', secret).update(BODY).digest('hex')}`

describe('the outcome of a webhook delivery attempt decides whether the delivery is retried', () => {
  test.each([200, 201, 204, 299])(
    'a webhook delivery has the state delivered after the response status %p',
    async (code) => {
      await using receiver = await startReceiver(status(code))
      const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
      expect(await waitForEnd(agent, id)).toMatchObject({ status: 'delivered', attemptCount: 1 })
    },
  )

  test.each([301, 302, 303, 307, 308, 400, 401, 404, 408, 410, 422, 429, 499])(
    'a webhook delivery has the state aborted after the response status %p, and the Location header is not followed',
    async (code) => {
      await using elsewhere = await startReceiver()
      await using receiver = await startReceiver((_request, response) => {
        response.writeHead(code, { location: elsewhere.url, 'retry-after': '1' }).end('no')
      })
      const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
      const delivery = await waitForEnd(agent, id)
      expect(delivery).toMatchObject({ status: 'aborted', attemptCount: 1, nextAttemptAt: null })
      expect(delivery.attempts).toMatchObject([{ status: code, error: null, response: 'no' }])
      await waitForNoJob(service.database, id)
      expect(receiver.requests).toHaveLength(1)
      expect(elsewhere.requests).toHaveLength(0)
    },
  )

  test.each([500, 502, 503, 504, 599])(
    'a webhook delivery stays pending after the response status %p, because the attempt is retried',
    async (code) => {
      await using receiver = await startReceiver(status(code))
      const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
      const { attempts, status: state } = await waitForAttempts(agent, id, 1)
      expect(state).toBe('pending')
      expect(attempts).toMatchObject([{ number: 1, status: code, error: null }])
    },
  )

  test('a webhook delivery stays pending after a refused or reset connection, because the attempt is retried', async () => {
    await using receiver = await startReceiver((_request, response) => {
      response.socket?.resetAndDestroy()
    })
    for (const [url, error] of [
      ['http://127.0.0.1:1/hook', /ECONNREFUSED|connection failed/i],
      [receiver.url, /ECONNRESET|closed|failed/i],
    ] as const) {
      const id = await sendEvent(service.database, agent, await register(agent, url))
      const { attempts, status: state } = await waitForAttempts(agent, id, 1)
      expect(state).toBe('pending')
      expect(attempts).toMatchObject([{ status: null, response: null }])
      expect(attempts[0].error).toMatch(error)
    }
  })
})

describe('the delivery log stores the beginning of a webhook response', () => {
  test.each([
    ['holds the first 1 KB', 'x'.repeat(1_000_000), 'x'.repeat(1024)],
    ['holds no half character', `${'x'.repeat(1023)}ü`, 'x'.repeat(1023)],
    ['holds no U+0000', 'a\0b\0', 'ab'],
    ['is empty for an empty answer', '', ''],
  ])('the stored beginning of a webhook response %s', async (_name, sent, kept) => {
    await using receiver = await startReceiver(status(200, sent))
    const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
    expect((await waitForEnd(agent, id)).attempts[0].response).toBe(kept)
  })
})

describe('a project can replay a webhook delivery, and the receiver gets the same bytes again', () => {
  test('a replay of a webhook delivery sends the same bytes and the same Idempotency-Key, and begins a new retry schedule', async () => {
    await using receiver = await startReceiver(status(400))
    const endpoint = await register(agent, receiver.url)
    const id = await sendEvent(service.database, agent, endpoint)
    await waitForEnd(agent, id)
    receiver.answer = status(503)
    const replayed = await agent.post(`/v0/webhooks/deliveries/${id}/replay`)
    expect(replayed.status).toBe(200)
    expect(replayed.body).toMatchObject({ deliveryId: id, status: 'pending', error: null })
    const { attempts, nextAttemptAt } = await waitForAttempts(agent, id, 2)
    expect(attempts.map(({ number, status }: any) => [number, status])).toEqual([
      [1, 400],
      [2, 503],
    ])
    const { at, ms } = attempts[1]
    expect(Date.parse(nextAttemptAt) - Date.parse(at) - ms).toBe(1_000)
    receiver.answer = status(200)
    await hurry(service.database, id)
    expect(await waitForEnd(agent, id)).toMatchObject({ status: 'delivered', attemptCount: 3 })
    expect(receiver.requests.map(({ headers }) => headers['x-service-delivery-attempt'])).toEqual([
      '1',
      '2',
      '3',
    ])
    const sent = receiver.requests.map(({ headers, body }) => [
      headers['x-service-idempotency-key'],
      headers['x-service-signature'],
      body.equals(BODY),
    ])
    expect(sent).toEqual(Array(3).fill([id, signature(endpoint.webhookSecret), true]))
  })

  test('a replay of a pending webhook delivery makes the next attempt at once, and the retry schedule continues', async () => {
    await using receiver = await startReceiver(status(503))
    const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
    for (const n of [1, 2, 3]) {
      await waitForAttempts(agent, id, n)
      if (n < 3) await hurry(service.database, id)
    }
    await agent.post(`/v0/webhooks/deliveries/${id}/replay`)
    const { attempts, nextAttemptAt } = await waitForAttempts(agent, id, 4)
    expect(receiver.requests.at(-1)?.headers['x-service-delivery-attempt']).toBe('4')
    const { at, ms } = attempts[3]
    expect(Date.parse(nextAttemptAt) - Date.parse(at) - ms).toBe(64_000)
  })

  test('if a webhook delivery is replayed during an open request, it succeeds when one of the two requests gets a 2xx response', async () => {
    const open: ServerResponse[] = []
    await using receiver = await startReceiver((_request, response) => open.push(response))
    const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
    await waitFor('the first request', () => open.length === 1)
    await agent.post(`/v0/webhooks/deliveries/${id}/replay`)
    await waitFor('the second request', () => open.length === 2)
    open[0]!.writeHead(500).end('later')
    await waitForAttempts(agent, id, 1)
    open[1]!.writeHead(200).end('thanks')
    const delivery = await waitForEnd(agent, id)
    expect(delivery).toMatchObject({ status: 'delivered', attemptCount: 2, nextAttemptAt: null })
    expect(delivery.attempts.map(({ number, status }: any) => [number, status])).toEqual([
      [1, 500],
      [2, 200],
    ])
    await waitForNoJob(service.database, id)
    expect(receiver.requests).toHaveLength(2)
  })

  test('a replay of a webhook delivery is refused with 409 if the endpoint is deleted', async () => {
    await using receiver = await startReceiver()
    const endpoint = await register(agent, receiver.url)
    const id = await sendEvent(service.database, agent, endpoint)
    await waitForEnd(agent, id)
    await agent.delete(`/v0/sellers/endpoints/${endpoint.endpointId}`)
    const { status: code, body } = await agent.post(`/v0/webhooks/deliveries/${id}/replay`)
    expect([code, body.error]).toEqual([409, 'conflict'])
    expect(receiver.requests).toHaveLength(1)
  })
})

test('a webhook delivery attempt after a change of the webhook secret is signed with the new secret', async () => {
  await using receiver = await startReceiver(status(503))
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint)
  await waitForAttempts(agent, id, 1)
  const path = `/v0/sellers/endpoints/${endpoint.endpointId}`
  const rotated = await agent.post(`${path}/rotate-secret`)
  const { webhookSecret } = rotated.body
  expect(webhookSecret).toMatch(/^whsec_[0-9a-f]{64}$/)
  expect(webhookSecret).not.toBe(endpoint.webhookSecret)
  expect((await agent.get(path)).body).not.toHaveProperty('webhookSecret')
  await hurry(service.database, id)
  await waitForAttempts(agent, id, 2)
  expect(receiver.requests.map(({ headers }) => headers['x-service-signature'])).toEqual([
    signature(endpoint.webhookSecret),
    signature(webhookSecret),
  ])
})

describe('a webhook delivery is aborted when its endpoint, its webhook URL or its project is removed', () => {
  const ends: [string, string, (endpointId: string, owner: Agent) => Promise<unknown>][] = [
    [
      'once the endpoint is deleted',
      'the endpoint was deleted',
      (id, owner) => owner.delete(`/v0/sellers/endpoints/${id}`),
    ],
    [
      'once the webhook URL is removed',
      'the webhook URL was removed',
      (id, owner) => owner.patch(`/v0/sellers/endpoints/${id}`, { webhookUrl: null }),
    ],
    [
      'once the project is deleted',
      'the project was deleted',
      (_id, owner) => service.platform.delete(`/v0/platform/projects/${owner.project.id}`),
    ],
  ]
  test.each(ends)('pending webhook deliveries are aborted %s', async (_when, error, end) => {
    const owner = await service.newAgent()
    await using receiver = await startReceiver(status(503))
    const endpoint = await register(owner, receiver.url)
    const id = await sendEvent(service.database, owner, endpoint)
    await waitForAttempts(owner, id, 1)
    await end(endpoint.endpointId, owner)
    const sent = receiver.requests.length
    await hurry(service.database, id)
    const late = await sendEvent(service.database, owner, endpoint)
    const ended = await waitFor('both to be given up', async () => {
      const { rows } = await service.database.pool.query(
        `select status, error from webhook_deliveries where id = any ($1) and status <> 'pending'
         order by row`,
        [[id, late]],
      )
      return rows.length === 2 ? rows : null
    })
    expect(ended).toEqual([
      { status: 'aborted', error },
      { status: 'aborted', error: 'the endpoint no longer has a webhook' },
    ])
    await waitForNoJob(service.database, id)
    expect(receiver.requests).toHaveLength(sent)
  })
})
