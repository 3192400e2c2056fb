import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { changeProject } from '../../../support/changeProject.ts'
import type { Agent } from '../../../support/service.ts'
import {
  PRICE,
  pay,
  payTo,
  RESOURCE,
  redeem,
  registerEndpoint,
  SEPOLIA,
  startTestTill,
  type TestTill,
} from '../../../support/till/till.ts'

let till: TestTill
let seller: Agent

beforeAll(async () => {
  till = await startTestTill()
  seller = await till.newSeller()
})
afterAll(() => till[Symbol.asyncDispose]())

const challenge = (body: Record<string, unknown>, agent = seller) =>
  agent.post('/v0/payments/challenge', { amount: PRICE, resource: RESOURCE, ...body })

describe('a seller who requests an x402 challenge gets a 402 response body, or an error that names the wrong field', () => {
  test('the challenge is the body of a 402 response that x402 clients accept', async () => {
    const { status, headers, body } = await challenge({
      description: 'A report',
      mimeType: 'text/csv',
    })
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(body).toEqual({
      x402Version: 1,
      error: 'X-PAYMENT header is required',
      accepts: [
        {
          scheme: 'exact',
          network: 'base-sepolia',
          maxAmountRequired: '10000',
          resource: RESOURCE,
          description: 'A report',
          mimeType: 'text/csv',
          payTo,
          maxTimeoutSeconds: 120,
          asset: SEPOLIA.usdcAddress,
          extra: { name: 'USDC', version: '2' },
        },
      ],
      headers: { 'PAYMENT-REQUIRED': expect.stringMatching(/^[A-Za-z0-9+/]+=*$/) },
    })
  })

  test('a long description in the challenge is truncated, but never in the middle of a character', async () => {
    for (const [given, kept] of [
      ['x'.repeat(501), 'x'.repeat(500)],
      [`${'x'.repeat(499)}🛒`, 'x'.repeat(499)],
    ]) {
      const { status, body } = await challenge({ description: given })
      expect([status, body.accepts?.[0].description]).toEqual([200, kept])
    }
  })

  test('every spelling of a resource URL gets a challenge for the same endpoint', async () => {
    for (const resource of [
      'https://API.example.com:443/report?q=1#top',
      'http://api.example.com/report',
    ]) {
      expect((await challenge({ resource })).status).toBe(200)
    }
  })

  test('if a challenge request has an invalid field, the error names this field', async () => {
    const table: [Record<string, unknown>, number, RegExp][] = [
      [{ amount: '0' }, 400, /^amount must/],
      [{ amount: '1e3' }, 400, /^amount must/],
      [{ amount: '0.0000001' }, 400, /^amount must/],
      [{ amount: '1000000000000' }, 400, /^amount must/],
      [{ amount: 1 }, 400, /^amount must/],
      [{ resource: 'https://api.example.com/other' }, 400, /^resource must match a registered/],
      [{ resource: 'https://api.example.com/Report' }, 400, /^resource must match a registered/],
      [{ resource: 'report' }, 400, /^resource must/],
      [{ network: 'base' }, 400, /^network must be "base-sepolia"/],
      [{ network: 'eip155:8453' }, 400, /^network must be "base-sepolia"/],
      [{ network: 'eip155:1' }, 400, /^network must/],
      [{ description: 7 }, 400, /^description must/],
    ]
    for (const [body, status, message] of table) {
      const answer = await challenge(body)
      expect([answer.status, answer.body.error]).toEqual([status, 'bad_request'])
      expect(answer.body.message).toMatch(message)
    }
  })

  test('a request for a challenge is refused if payments are not enabled or the API key lacks the scope', async () => {
    const stranger = await till.newSeller()
    const { pool } = till.service.database
    for (const change of [{ paymentsEnabled: false }, { paymentsEnabled: true, payTo: null }]) {
      await changeProject(pool, stranger.project.id, change)
      const { status, body } = await challenge({}, stranger)
      expect([status, body.error, body.message]).toEqual([
        403,
        'forbidden',
        'Payments are not enabled for this project',
      ])
    }
    const scopeless = await till.service.newAgent({ scopes: ['mail:read'] })
    expect((await challenge({}, scopeless)).body.message).toBe(
      'Missing required scope: payments:accept',
    )
  })
})

test('the API lists the payments of one project only, newest first and in pages', async () => {
  const other = await till.newSeller()
  const ids: string[] = []
  for (let n = 0; n < 5; n++)
    ids.unshift((await redeem(other, (await pay()).header)).body.paymentId)
  const seen: string[] = []
  let path = '/v0/payments?limit=2'
  for (;;) {
    const { body } = await other.get(path)
    expect(body.count).toBe(body.payments.length)
    seen.push(...body.payments.map((payment: any) => payment.id))
    if (body.nextPageToken === undefined) break
    path = `/v0/payments?limit=2&pageToken=${encodeURIComponent(body.nextPageToken)}`
  }
  expect(seen).toEqual(ids)
  expect((await seller.get(`/v0/payments/${ids[0]}`)).body.message).toBe('Payment not found')
  expect((await other.get('/v0/payments/pay_nothing')).status).toBe(404)
})

test('if a redeem call (which takes a payment) uses the Idempotency-Key of a different call, it gets a conflict, and a malformed Idempotency-Key is refused', async () => {
  const first = await pay()
  const key = { 'idempotency-key': 'order-1' }
  const { body } = await redeem(seller, first.header, {}, key)
  expect(body.ok).toBe(true)
  expect((await redeem(seller, first.header, {}, key)).body).toEqual(body)
  const other = 'https://api.example.com/priced'
  await registerEndpoint(till.service.database.pool, {
    projectId: seller.project.id,
    resource: other,
  })
  for (const changes of [{ amount: '0.02' }, { resource: other }]) {
    expect((await redeem(seller, first.header, changes, key)).status).toBe(409)
  }
  expect((await redeem(seller, (await pay()).header, {}, key)).status).toBe(409)
  // An Idempotency-Key belongs to one project, so another project can use the same text.
  const stranger = await till.newSeller()
  expect((await redeem(stranger, (await pay()).header, {}, key)).body.ok).toBe(true)
  const long = { 'idempotency-key': 'x'.repeat(256) }
  expect((await redeem(seller, first.header, {}, long)).status).toBe(400)
})

test('the readiness check /readyz reports whether the chain’s RPC node is reachable', async () => {
  const ready = async () => (await fetch(`${till.service.url}/readyz`)).json()
  expect(await ready()).toMatchObject({ checks: { rpc: 'ok' } })
  const { pool } = till.service.database
  // The lock keeps the watcher of the chain from writing between the update and the creation of the PostgreSQL rules
  // that block its writes.
  await pool.query(`
    begin;
    lock table chain_status in access exclusive mode;
    update chain_status set checked_at = clock_timestamp() + interval '1 hour', rpc_error = 'x';
    create rule frozen as on update to chain_status do instead nothing;
    create rule frozen_insert as on insert to chain_status do instead nothing;
    commit`)
  expect((await fetch(`${till.service.url}/readyz`)).status).toBe(503)
})
