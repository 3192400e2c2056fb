import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startReceiver } from '../../support/events/receiver.ts'
import {
  register,
  sendEvent,
  startWebhookService,
  waitForEnd,
} from '../../support/events/webhooks.ts'
import type { Agent, TestService } from '../../support/service.ts'
import '../../support/process/alone.ts'

/**
 * Limits how late a retry of a webhook delivery may be. If a delay in the retry schedule were wrong, a retry would be
 * at least 3 s early or late.
 */
const LATE_MAX_MS = 2_500
const DELIVERIES = 40

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService()
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

test('webhook retries begin 1 s and 4 s after the end of the last response, and never earlier', async () => {
  await using receiver = await startReceiver((request, response) => {
    const third = request.headers['x-service-delivery-attempt'] === '3'
    // The receiver responds slowly, so that the test sees that the retry delay counts from the end of the response.
    setTimeout(() => response.writeHead(third ? 200 : 500).end(), 200)
  })
  const endpoint = await register(agent, receiver.url)
  const ids = await Promise.all(
    Array.from({ length: DELIVERIES }, () => sendEvent(service.database, agent, endpoint)),
  )
  for (const id of ids) expect(await waitForEnd(agent, id)).toMatchObject({ status: 'delivered' })
  const lateMs: [number[], number[]] = [[], []]
  for (const id of ids) {
    const requests = receiver.requests.filter(
      ({ headers }) => headers['x-service-idempotency-key'] === id,
    )
    expect(requests).toHaveLength(3)
    for (const [n, delayMs] of [1_000, 4_000].entries()) {
      lateMs[n]!.push(requests[n + 1]!.atMs - requests[n]!.answeredMs - delayMs)
    }
  }
  for (const late of lateMs) {
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0)
    // The test checks the shortest measured delay. A busy machine makes only some retries late, whereas a wrong delay
    // in the schedule would make all of them late.
    expect(Math.min(...late)).toBeLessThan(LATE_MAX_MS)
  }
})
