import { afterAll, beforeAll, expect, test } from 'bun:test'
import { testWhole } from '../../support/database/extent.ts'
import { startReceiver } from '../../support/events/receiver.ts'
import {
  findJob,
  register,
  sendEvent,
  startWebhookService,
  waitForAttempts,
  waitForEnd,
} from '../../support/events/webhooks.ts'
import { RECOVERY_LIMIT_MS } from '../../support/process/alone.ts'
import { printed, type ServiceProcess, startProcess } from '../../support/process/process.ts'
import { startTcpProxy } from '../../support/process/tcpProxy.ts'
import type { Agent, TestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/whole.ts'

const OUTAGE_MS = 3_000

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startWebhookService({ pools: [] })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

async function startWorker(databaseUrl = service.database.url): Promise<ServiceProcess> {
  const worker = startProcess(
    'workers/main.ts',
    {
      DATABASE_URL: databaseUrl,
      DATA_DIR: service.config.dataDir,
      ALLOW_PRIVATE_NETWORKS: 'true',
      LOG_LEVEL: 'info',
    },
    ['--pool', 'webhooks'],
  )
  await printed(worker, /"msg":"ready"/)
  return worker
}

async function kill(worker: ServiceProcess): Promise<void> {
  worker.child.kill('SIGKILL')
  expect(await worker.exited).toBe('SIGKILL')
}

/**
 * Returns the recorded gaps in milliseconds between the end of each delivery attempt and the start of the next attempt.
 */
const gaps = (attempts: any[]) =>
  attempts.slice(1).map(({ at }, n) => Date.parse(at) - Date.parse(attempts[n].at) - attempts[n].ms)

test('if kill −9 ends a worker during a webhook attempt, the attempt is repeated, and a kill between two attempts causes no delay', async () => {
  let hang = true
  await using receiver = await startReceiver(({ headers }, response) => {
    const isThird = headers['x-service-delivery-attempt'] === '3'
    if (!hang) response.writeHead(isThird ? 200 : 503).end()
  })
  await using first = await startWorker()
  const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
  await waitFor('the attempt to be under way', () => receiver.requests.length === 1)
  await using second = await startWorker()
  hang = false
  await kill(first)
  await waitForAttempts(agent, id, 1)
  // A worker that is still alive makes the next attempt of the webhook delivery on time.
  expect(await findJob(service.database, id)).toMatchObject({ attempts: 0 })
  await using third = await startWorker()
  await waitForAttempts(agent, id, 2)
  await kill(second)
  const delivery = await waitForEnd(agent, id)
  expect(delivery.attempts.map((attempt: any) => [attempt.number, attempt.status])).toEqual([
    [1, 503],
    [2, 503],
    [3, 200],
  ])
  const [one, four] = gaps(delivery.attempts)
  expect(one).toBeGreaterThanOrEqual(999)
  expect(four).toBeGreaterThanOrEqual(3_999)
  expect(four).toBeLessThan(RECOVERY_LIMIT_MS)
  expect(
    receiver.requests.map(({ headers }) => [
      headers['x-service-delivery-attempt'],
      headers['x-service-idempotency-key'],
    ]),
  ).toEqual(['1', '1', '2', '3'].map((n) => [n, id]))
  expect(third.stderr()).toBe('')
})

testWhole('if one of three processes is killed, no webhook delivery is lost or early', async () => {
  const seen = new Map<string, number>()
  await using receiver = await startReceiver((request, response) => {
    const id = String(request.headers['x-service-idempotency-key'])
    const times = (seen.get(id) ?? 0) + 1
    seen.set(id, times)
    response.writeHead(times < 2 ? 500 : 200).end()
  })
  await using _first = await startWorker()
  await using second = await startWorker()
  await using _third = await startWorker()
  const endpoints = []
  for (let n = 0; n < 5; n++) endpoints.push(await register(agent, receiver.url))
  const ids: string[] = []
  for (let n = 0; n < 200; n++) {
    ids.push(await sendEvent(service.database, agent, endpoints[n % 5]!))
    if (n === 100) await kill(second)
  }
  for (const id of ids) {
    const { attempts, status: state } = await waitForEnd(agent, id)
    expect(state).toBe('delivered')
    expect(attempts.map((attempt: any) => attempt.number)).toEqual(
      attempts.map((_: unknown, n: number) => n + 1),
    )
    for (const gapMs of gaps(attempts)) expect(gapMs).toBeGreaterThanOrEqual(999)
  }
  // A delivery attempt may have arrived twice only if the killed process was making this attempt.
  const attemptsSeen = new Map<string, number>()
  for (const { headers } of receiver.requests) {
    const key = `${headers['x-service-idempotency-key']} ${headers['x-service-delivery-attempt']}`
    attemptsSeen.set(key, (attemptsSeen.get(key) ?? 0) + 1)
  }
  expect([...attemptsSeen.values()].filter((times) => times > 2)).toEqual([])
  expect([...attemptsSeen.values()].filter((times) => times === 2).length).toBeLessThan(50)
})

testWhole(
  'a worker that gets SIGTERM lets its attempt end, records the attempt once and leaves no job',
  async () => {
    const open: (() => void)[] = []
    await using receiver = await startReceiver((_request, response) => {
      open.push(() => response.end())
    })
    await using worker = await startWorker()
    const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
    await waitFor('the attempt to be under way', () => open.length === 1)
    worker.child.kill('SIGTERM')
    await printed(worker, /"msg":"draining"/)
    open[0]!()
    expect(await worker.exited).toBe(0)
    const { body } = await agent.get(`/v0/webhooks/deliveries/${id}`)
    expect(body).toMatchObject({ status: 'delivered', attemptCount: 1 })
    // The test checks only the job of this delivery. Jobs of workers that other tests killed stay in the queue until a
    // regular job releases them.
    expect(await findJob(service.database, id)).toBeNull()
    expect(receiver.requests).toHaveLength(1)
  },
)

test('if a webhook delivery attempt ends during a database outage, it is recorded after the outage and not repeated', async () => {
  const open: (() => void)[] = []
  await using receiver = await startReceiver((request, response) => {
    const first = request.headers['x-service-delivery-attempt'] === '1'
    if (first) open.push(() => response.writeHead(503).end())
    else response.end()
  })
  const direct = new URL(service.database.url)
  await using proxy = await startTcpProxy(Number(direct.port))
  const url = service.database.url.replace(`:${direct.port}/`, `:${proxy.port}/`)
  await using _worker = await startWorker(url)
  const id = await sendEvent(service.database, agent, await register(agent, receiver.url))
  await waitFor('the attempt to be under way', () => open.length === 1)
  await proxy.cut()
  const endedMs = Date.now()
  open[0]!()
  await waitFor('a while to pass', () => Date.now() > endedMs + OUTAGE_MS)
  await proxy.mend()
  const delivery = await waitForEnd(agent, id)
  expect(delivery.attempts.map((attempt: any) => attempt.status)).toEqual([503, 200])
  const { at, ms } = delivery.attempts[0]
  // The delay before the next delivery attempt counts from the end of the first attempt, although the outcome of the
  // first attempt was recorded only after the outage.
  expect(Math.abs(Date.parse(at) + ms - endedMs)).toBeLessThan(OUTAGE_MS)
  expect(receiver.requests.map(({ headers }) => headers['x-service-delivery-attempt'])).toEqual([
    '1',
    '2',
  ])
})
