/** Tests statistics about more rows than the service counts. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Agent, startTestService, type TestService } from '../../support/service.ts'
import '../../support/long.ts'

const COUNTED_MAX = 100_000

let service: TestService
let agent: Agent
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
  agent = await service.newAgent()
})
afterAll(() => service[Symbol.asyncDispose]())

for (const [path, columns, values] of [
  [
    '/v0/logs/stats',
    'audit_log (action, actor, request_id, outcome,',
    `'vault.get', 'a', 'r', 'ok'`,
  ],
  [
    '/v0/webhooks/deliveries/stats',
    'webhook_deliveries (id, event, idempotency_key, url, body, status,',
    `gen_random_uuid()::text, 'message.received', '', 'https://a.example', '', 'delivered'`,
  ],
] as const) {
  test(`if ${path} has more rows than the service counts, the response says that the count is incomplete`, async () => {
    const add = (rows: number) =>
      service.database.pool.query(
        `insert into ${columns} project_id) select ${values}, $1 from generate_series(1, $2)`,
        [agent.project.id, rows],
      )
    const stats = async () => {
      const { total, complete } = (await agent.get(path)).body
      return [total, complete]
    }
    await add(COUNTED_MAX - 1)
    expect(await stats()).toEqual([COUNTED_MAX - 1, true])
    await add(1)
    expect(await stats()).toEqual([COUNTED_MAX, false])
    await add(1)
    expect(await stats()).toEqual([COUNTED_MAX, false])
  })
}
