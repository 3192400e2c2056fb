/**
 * Tests purchases whose requests contain vault secrets. The limits of the credential apply to these requests, and no
 * response shows the secret.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { startMcpSeller } from '../../support/purse/mcpSeller.ts'
import {
  type Buyer,
  newBuyer,
  type Seller,
  served,
  startPurseTill,
  startSeller,
} from '../../support/purse/purseScene.ts'
import type { TestTill } from '../../support/till/till.ts'
import '../../support/long.ts'

const SECRET = 'sk_live_correct-horse-battery'
let till: TestTill
let seller: Seller
let buyer: Buyer
beforeAll(async () => {
  till = await startPurseTill()
})
beforeEach(async () => {
  seller = startSeller(till)
  buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
})

const store = async (host: string) => {
  const stored = await buyer.put('/v0/vault/weather', {
    type: 'API_KEY',
    data: { apiKey: SECRET },
    allowedHosts: [host],
    placement: ['header:authorization'],
  })
  expect(stored.status).toBe(200)
}
const request = { credential: 'weather', headers: { authorization: 'Bearer {{apiKey}}' } }

test('each request of a purchase contains the vault secret, but the result of the purchase does not', async () => {
  await store(seller.host)
  const heard: (string | null)[] = []
  seller.ask = (asked) => {
    heard.push(asked.headers.get('authorization'))
    // The fake seller of this test repeats each header that it receives in every part of its 402 response.
    return seller.challenge([{}], {
      resource: { url: seller.url, description: `You are ${SECRET}` },
      extensions: { 'offer-receipt': { info: { offers: [{ signature: SECRET }] } } },
    })
  }
  seller.serve = async (payment, paid) => {
    heard.push(paid.headers.get('authorization'))
    await seller.settle(payment)
    return new Response(JSON.stringify({ said: SECRET, hex: Buffer.from(SECRET).toString('hex') }))
  }
  const { status, body } = await buyer.pay(seller.url, request)
  expect([status, body.state, heard]).toEqual([
    200,
    'answered',
    [`Bearer ${SECRET}`, `Bearer ${SECRET}`],
  ])
  const record = await buyer.settled(body.purchaseId, 'spent')
  expect(record).toMatchObject({ credential: 'weather', terms: { amountUsdc: '0.01' } })
  for (const shown of [JSON.stringify(body), JSON.stringify(record)]) {
    expect(shown).not.toContain(SECRET)
    expect(shown).not.toContain(Buffer.from(SECRET).toString('hex'))
  }
  const { body: audit } = await buyer.get('/v0/logs?action=vault.use')
  expect(audit).toMatchObject({ count: 1, logs: [{ subject: 'weather' }] })
})

test('a vault secret is not shown to the agent if a seller returns it as the payee or as the transaction of a payment', async () => {
  const [asTransaction, asPayee] = ['5e'.repeat(32), 'c7'.repeat(20)]
  const put = (apiKey: string) =>
    buyer.put('/v0/vault/weather', {
      ...{ type: 'API_KEY', data: { apiKey }, allowedHosts: [seller.host] },
      placement: ['header:authorization'],
    })
  await put(asTransaction)
  seller.serve = async (payment) => served(payment, `0x${asTransaction}`)
  const paid = await buyer.pay(seller.url, request)
  expect(paid.body).toMatchObject({ state: 'answered', payment: { claimedTxHash: null } })
  expect(JSON.stringify(await buyer.purchase(paid.body.purchaseId))).not.toContain(asTransaction)
  await put(asPayee.toUpperCase())
  seller.ask = () => seller.challenge([{ payTo: `0x${asPayee}` }])
  const refused = await buyer.pay(seller.url, request)
  expect(refused.body).toMatchObject({ state: 'refused', reason: 'bad_payee', terms: null })
  const quoted = await buyer.post('/v0/purse/quote', { url: seller.url, ...request })
  expect(JSON.stringify([refused.body, quoted.body])).not.toContain(asPayee)
  expect(seller.received.length).toBe(1)
})

test('a purchase whose credential is only for another host sends no request', async () => {
  await store('api.example.com')
  const { status, body } = await buyer.pay(seller.url, request)
  expect([status, (body as unknown as { error: string }).error]).toEqual([403, 'forbidden'])
  expect([seller.asked.length, seller.received.length]).toEqual([0, 0])
})

test('a purchase that is refused does not count as a use of its credential', async () => {
  await store('api.example.com')
  const lastUsedAt = async () => (await buyer.get('/v0/vault')).body.credentials[0].lastUsedAt
  expect((await buyer.pay(seller.url, request)).status).toBe(403)
  expect(await lastUsedAt()).toBeNull()
  await store(seller.host)
  const { body } = await buyer.pay(seller.url)
  const copies = await till.service.database.pool.query(
    `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by, key_id,
       wrapped_key, ciphertext)
     select 'pur_' || gen_random_uuid(), project_id, kind, request_hash, method, host, path, max_atomic, asked_by,
       key_id, wrapped_key, ciphertext
     from purchases, generate_series(1, 500) where id = $1 returning id`,
    [body.purchaseId],
  )
  expect((await buyer.pay(seller.url, request)).status).toBe(429)
  expect(await lastUsedAt()).toBeNull()
  const { body: audit } = await buyer.get('/v0/logs?action=vault.use')
  expect(audit.logs).toMatchObject([{ outcome: 'refused' }, { outcome: 'refused' }])
  await till.service.database.pool.query('delete from purchases where id = any ($1)', [
    copies.rows.map(({ id }) => id),
  ])
  expect((await buyer.pay(seller.url, request)).body.state).toBe('answered')
  expect(Date.parse(await lastUsedAt())).toBePositive()
})

test('a purchase with a credential needs the scope vault:use, and the credential must exist', async () => {
  const { status } = await buyer.pay(seller.url, { ...request, credential: 'missing' })
  expect(status).toBe(404)
  await store(seller.host)
  const spender = await till.service.newAgent({ scopes: ['purse:read', 'purse:pay'] })
  const answer = await spender.post(
    '/v0/purse/pay',
    { url: seller.url, maxAmount: '1', ...request },
    { 'idempotency-key': 'one' },
  )
  expect(answer.status).toBe(403)
  expect(seller.asked).toEqual([])
})

test('if the credential of a purchase cannot be decrypted, the audit log records the failed read', async () => {
  await store(seller.host)
  await till.service.database.pool.query(
    `update credential_versions v set ciphertext = overlay(ciphertext placing '\\x0000'::bytea from 20)
     from credentials c where c.row = v.credential_row and c.project_id = $1`,
    [buyer.project.id],
  )
  expect((await buyer.pay(seller.url, request)).status).toBe(500)
  const { logs } = (await buyer.get('/v0/logs?action=vault.use')).body
  expect(logs).toMatchObject([{ subject: 'weather', outcome: 'failed' }])
  expect(seller.asked).toEqual([])
})

test('a repeated purchase with a credential finds the first purchase, and reads the credential only once', async () => {
  await store(seller.host)
  const uses = async () => (await buyer.get('/v0/logs?action=vault.use')).body.count
  const before = await uses()
  const first = await buyer.pay(seller.url, { ...request, key: 'repeated' })
  expect(first.body.state).toBe('answered')
  await buyer.delete('/v0/vault/weather')
  const again = await buyer.pay(seller.url, { ...request, key: 'repeated' })
  expect([again.status, again.body.purchaseId]).toEqual([200, first.body.purchaseId])
  const other = await buyer.pay(seller.url, { ...request, key: 'repeated', maxAmount: '0.5' })
  expect(other.status).toBe(409)
  expect([seller.received.length, (await uses()) - before]).toEqual([1, 1])
})

test('if a credential is deleted during a purchase, the purchase does not send its secret again', async () => {
  await store(seller.host)
  seller.serve = async () => {
    await buyer.delete('/v0/vault/weather')
    return new Response('busy', { status: 503 })
  }
  const { body } = await buyer.pay(seller.url, request)
  expect(body).toMatchObject({ state: 'unknown', reason: 'credential', payment: { state: 'open' } })
  expect(seller.received.length).toBe(1)
})

test('quotes and backslashes in a vault secret stay unchanged in the arguments of an MCP tool', async () => {
  await using mcp = startMcpSeller()
  const password = 'pa\\ss"word\\n'
  const put = (placement: string[]) =>
    buyer.put('/v0/vault/login', {
      ...{ type: 'LOGIN', data: { password }, allowedHosts: [mcp.host], placement },
    })
  const call = {
    credential: 'login',
    tool: { name: 'sign_in', arguments: { pin: '{{password}}' } },
  }
  for (const placement of ['body', 'json:/pin', 'password@json:/pin']) {
    expect((await put([placement])).status).toBe(200)
    const { body } = await buyer.pay(mcp.url, call)
    expect([placement, body.state]).toEqual([placement, 'answered'])
    expect(mcp.calls.pop()).toMatchObject({ name: 'sign_in', arguments: { pin: password } })
  }
  await put(['json:/other'])
  expect((await buyer.pay(mcp.url, call)).status).toBe(403)
  expect(mcp.calls).toEqual([])
})

test('a vault secret in the call of an MCP tool follows no redirect to another path of the same host', async () => {
  await using mcp = startMcpSeller()
  const stored = await buyer.put('/v0/vault/weather', {
    ...{ type: 'API_KEY', data: { apiKey: SECRET }, allowedHosts: [mcp.host] },
    allowedPaths: ['/mcp'],
  })
  expect(stored.status).toBe(200)
  const redirect = () => new Response(null, { status: 307, headers: { location: '/forum/posts' } })
  const called = { ...request, tool: { name: 'weather' } }
  mcp.call = redirect
  await buyer.pay(mcp.url, called)
  mcp.initialize = redirect
  await buyer.pay(mcp.url, called)
  expect([...new Set(mcp.paths)]).toEqual(['/mcp'])
})

test('the DELETE request that ends an MCP session is sent only if the vault secret in the session may be used with DELETE requests', async () => {
  await using mcp = startMcpSeller()
  const called = { ...request, tool: { name: 'weather' } }
  for (const [allowedMethods, ended] of [
    [['POST'], 0],
    [['POST', 'DELETE'], 1],
  ] as const) {
    const stored = await buyer.put('/v0/vault/weather', {
      ...{ type: 'API_KEY', data: { apiKey: SECRET }, allowedHosts: [mcp.host], allowedMethods },
    })
    expect(stored.status).toBe(200)
    expect((await buyer.pay(mcp.url, called)).body.state).toBe('answered')
    expect(mcp.requests.filter((one) => one === 'DELETE')).toHaveLength(ended)
  }
})
