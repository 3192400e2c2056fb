/** Tests when /readyz tells a load balancer to send requests to a process. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestService, type TestService } from '../../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ smtp: false, workers: false })
})
afterAll(() => service[Symbol.asyncDispose]())

const ask = async (query: string) => {
  const response = await fetch(`${service.url}/readyz${query}`)
  return { status: response.status, body: (await response.json()) as any }
}

test('while the RPC node is unreachable, /readyz answers 503, and /readyz?exclude=rpc still answers as ready', async () => {
  const { pool } = service.database
  await pool.query(
    `insert into chain_status (rpc_error, checked_at) values ('away', clock_timestamp())`,
  )
  expect(await ask('')).toMatchObject({
    status: 503,
    body: { status: 'unready', checks: { rpc: 'unreachable' } },
  })
  expect(await ask('?exclude=rpc')).toMatchObject({
    status: 200,
    body: { status: 'degraded', checks: { rpc: 'unreachable' } },
  })
})

test('a query of /readyz can exclude the check of the RPC node, but no other check', async () => {
  for (const query of ['?exclude=database', '?exclude=', '?exclude=rpc&exclude=migrations']) {
    const { status, body } = await ask(query)
    expect([query, status]).toEqual([query, 400])
    expect(body.message).toContain('exclude must be rpc')
  }
})

test('if the last report about the RPC node is too old, /readyz treats it as missing', async () => {
  const { pool } = service.database
  await pool.query(
    `update chain_status set rpc_error = null, checked_at = clock_timestamp() - interval '1 hour'`,
  )
  expect((await ask('')).body.checks.rpc).toBe('no worker reports')
  await pool.query('update chain_status set checked_at = clock_timestamp()')
  expect((await ask('')).body.checks.rpc).toBe('ok')
})
