import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { startReceiver, status } from '../support/receiver.ts'
import type { Agent, TestService } from '../support/service.ts'
import {
  BODY,
  findJob,
  hurry,
  register,
  sendEvent,
  startWebhookService,
  waitForAttempts,
  waitForEnd,
} from '../support/webhooks.ts'

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

test('an event arrives once, byte for byte, signed with the secret that was shown', async () => {
  await using receiver = await startReceiver()
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint, { subjectId: 'pay_1' })
  const delivery = await waitForEnd(agent, id)
  expect(receiver.requests).toHaveLength(1)
  const { method, headers, body } = receiver.requests[0]!
  expect(method).toBe('POST')
  expect(body.equals(BODY)).toBe(true)
  const hex = createHmac('sha256', endpoint.webhookSecret).update(body).digest('hex')
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'x-service-event': 'payment.received',
    'x-service-idempotency-key': id,
    'x-service-signature': `sha256=${hex}`,
    'x-service-delivery-attempt': '1',
  })
  expect(delivery).toEqual({
    deliveryId: id,
    endpointId: endpoint.endpointId,
    paymentId: 'pay_1',
    event: 'payment.received',
    idempotencyKey: id,
    url: receiver.url,
    status: 'delivered',
    attemptCount: 1,
    nextAttemptAt: null,
    error: null,
    createdAt: expect.any(String),
    attempts: [
      {
        number: 1,
        at: expect.any(String),
        status: 200,
        ms: expect.any(Number),
        error: null,
        response: 'ok',
      },
    ],
  })
})

test('a failing receiver is tried six times, 1, 4, 16, 64 and 300 s after the end of the attempt before', async () => {
  await using receiver = await startReceiver(status(503, 'try later'))
  const endpoint = await register(agent, receiver.url)
  const id = await sendEvent(service.database, agent, endpoint)
  for (const [n, delayS] of [1, 4, 16, 64, 300].entries()) {
    const { attempts, nextAttemptAt, status } = await waitForAttempts(agent, id, n + 1)
    expect(status).toBe('pending')
    const { at, ms } = attempts.at(-1)
    expect(Date.parse(nextAttemptAt) - (Date.parse(at) + ms)).toBe(delayS * 1000)
    expect((await findJob(service.database, id))?.run_at.toISOString()).toBe(nextAttemptAt)
    await hurry(service.database, id)
  }
  const delivery = await waitForEnd(agent, id)
  expect(delivery).toMatchObject({ status: 'exhausted', attemptCount: 6, nextAttemptAt: null })
  expect(await findJob(service.database, id)).toBeNull()
  const { requests } = receiver
  expect(requests.map(({ headers }) => headers['x-service-delivery-attempt'])).toEqual([
    '1',
    '2',
    '3',
    '4',
    '5',
    '6',
  ])
  expect(new Set(requests.map(({ headers }) => headers['x-service-idempotency-key']))).toEqual(
    new Set([id]),
  )
  expect(requests.every(({ body }) => body.equals(BODY))).toBe(true)
})
