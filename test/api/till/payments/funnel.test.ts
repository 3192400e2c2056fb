/**
 * Tests the funnel (the counts of each step from an x402 challenge to a payment), the filters of the payment list, and
 * the signed payment header.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startApi } from '../../../../api/http/server.ts'
import { OfferCounts } from '../../../../api/till/payments/offerCounts.ts'
import { decodePaymentHeader } from '../../../../shared/till/x402.ts'
import { addOfferCounts } from '../../../../sql/till/payments/funnel.ts'
import { silentLog } from '../../../support/logs.ts'
import { type Agent, createClient } from '../../../support/service.ts'
import { encodeHeader, payloadV2 } from '../../../support/till/headers/x402v2.ts'
import {
  newPayer,
  PRICE,
  pay,
  payer,
  RESOURCE,
  redeem,
  redeemToEnd,
  registerEndpoint,
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

const funnel = async (query = '', agent = seller) => await agent.get(`/v0/payments/funnel${query}`)
const NOTHING = {
  ...{ challenges: 0, refused: 0, claimed: 0, settled: 0, failed: 0 },
  ...{ amountUsdc: '0', amountUsdcRaw: '0' },
}

test('the payment funnel (from challenge to payment) counts each payment at once, and a process saves its counts of challenges and refusals when it shuts down', async () => {
  const { config, database } = till.service
  expect((await funnel()).body).toMatchObject({ total: NOTHING, byDay: [], byEndpoint: [] })
  const other = startApi(config, database.url, silentLog)
  const client = createClient(`http://127.0.0.1:${other.port}`, seller.key)
  const order = { amount: PRICE, resource: RESOURCE }
  for (let n = 0; n < 3; n++) await client.post('/v0/payments/challenge', order)
  expect((await client.post('/v0/payments/challenge', { ...order, amount: '0' })).status).toBe(400)
  expect((await redeem(client as never, encodeHeader({}))).body.ok).toBe(false)
  expect((await redeemToEnd(client as never, (await pay()).header)).body.ok).toBe(true)
  await other.stop()
  const { body } = await funnel()
  const sums = {
    ...{ challenges: 3, refused: 1, claimed: 1, settled: 1, failed: 0 },
    ...{ amountUsdc: PRICE, amountUsdcRaw: '10000' },
  }
  const day = new Date().toISOString().slice(0, 10)
  expect(body).toMatchObject({
    total: sums,
    byDay: [{ day, ...sums }],
    byEndpoint: [{ urlPattern: RESOURCE, ...sums }],
  })
  const [{ endpointId }] = body.byEndpoint
  expect((await funnel(`?endpointId=${endpointId}`)).body.total).toEqual(sums)
  expect((await funnel(`?endpointId=se_${'0'.repeat(24)}`)).body.total).toEqual(NOTHING)
  expect((await funnel('', await till.newSeller())).body.total).toEqual(NOTHING)
  for (const [query, field] of [
    ['?days=0', 'days'],
    ['?days=91', 'days'],
    ['?endpointId=x', 'endpointId'],
  ] as const) {
    const { status, body: error } = await funnel(query)
    expect([status, error.message]).toEqual([
      400,
      expect.stringMatching(new RegExp(`^${field} must`)),
    ])
  }
})

test('if the chain refuses a stored payment, the payment funnel (the counts from challenge to payment) counts it as failed but not as refused', async () => {
  const { config, database } = till.service
  const shop = await till.newSeller()
  const other = startApi(config, database.url, silentLog)
  const client = createClient(`http://127.0.0.1:${other.port}`, shop.key)
  const { header } = await pay({}, { account: await newPayer(till.client, 1n) })
  for (let n = 0; n < 3; n++) {
    const { body } = await redeemToEnd(client as never, header)
    expect(body).toMatchObject({ ok: false, stage: 'verify', reason: 'insufficient_funds' })
  }
  await other.stop()
  const sums = { challenges: 0, refused: 0, claimed: 1, settled: 0, failed: 1 }
  expect((await funnel('', shop)).body.total).toMatchObject(sums)
})

test('the payment funnel (from challenge to payment) adds the counts of several processes, and keeps the counts while the database is unreachable', async () => {
  const { pool } = till.service.database
  const another = await till.newSeller()
  const projectId = another.project.id
  const endpointId = await registerEndpoint(pool, { projectId, resource: 'https://a.example/b' })
  const offer = { seller: { projectId }, endpointId }
  const away = { query: () => Promise.reject(new Error('away')) }
  let isAway = true
  const query = (...call: [never]) => (isAway ? away.query() : pool.query(...call))
  const first = new OfferCounts({ query } as never, silentLog)
  const second = new OfferCounts(pool, silentLog)
  first.record('challenges', offer)
  first.record('challenges', { ...offer, endpointId: null })
  await first.flush()
  first.record('challenges', offer)
  second.record('challenges', offer)
  second.record('refusals', offer)
  isAway = false
  await Promise.all([first.stop(), second.stop()])
  expect((await funnel('', another)).body.total).toMatchObject({ challenges: 3, refused: 1 })
  // The test adds counts of payments and challenges for a project id without a project, as if the project had been
  // deleted.
  const day = '2026-01-05'
  const gone = { projectId: 'prj_none', endpointId, day, challenges: 1, refusals: 0 }
  await addOfferCounts(pool, [gone])
  const { rows } = await pool.query(`select from offer_counts where project_id = 'prj_none'`)
  expect(rows).toHaveLength(0)
})

test('the payment list is filtered by state, endpoint, payer, time and amount', async () => {
  const { pool } = till.service.database
  const shop = await till.newSeller()
  const resource = 'https://api.example.com/dear'
  const endpointId = await registerEndpoint(pool, { projectId: shop.project.id, resource })
  const account = await newPayer(till.client)
  const ids: string[] = []
  for (const [signed, more] of [
    [await pay(), {}],
    [await pay({ value: 50_000n }, { account }), { resource, amount: '0.05' }],
    [await pay(), {}],
  ] as const) {
    const { body } = await redeemToEnd(shop, signed.header, more)
    expect(body.ok).toBe(true)
    ids.push(body.paymentId)
  }
  const [first, dear, failed] = ids as [string, string, string]
  await pool.query(
    `update payments set state = 'failed', failure_stage = 'settle', failure_reason = 'insufficient_funds',
       created_at = created_at - interval '2 days', granted_at = null, settled_at = null where id = $1`,
    [failed],
  )
  const list = async (query: string) => {
    const { status, body } = await shop.get(`/v0/payments?${query}`)
    return status === 200 ? body.payments.map(({ id }: any) => id) : [status, body.message]
  }
  const yesterday = new Date(Date.now() - 86_400_000).toISOString()
  expect(await list('')).toEqual([dear, first, failed])
  expect(await list('status=settled')).toEqual([dear, first])
  expect(await list('status=failed')).toEqual([failed])
  expect(await list(`endpointId=${endpointId}`)).toEqual([dear])
  expect(await list(`payer=${account.address.toLowerCase()}`)).toEqual([dear])
  expect(await list(`payer=${payer.address}`)).toEqual([first, failed])
  expect(await list(`from=${yesterday}`)).toEqual([dear, first])
  expect(await list(`to=${yesterday}`)).toEqual([failed])
  expect(await list('minAmountUsdc=0.02')).toEqual([dear])
  expect(await list('maxAmountUsdc=0.02&status=settled')).toEqual([first])
  const { nextPageToken } = (await shop.get('/v0/payments?status=settled&limit=1')).body
  expect(await list(`status=settled&limit=1&pageToken=${nextPageToken}`)).toEqual([first])
  const { body } = await shop.get('/v0/payments?status=failed')
  expect(body.payments[0]).toMatchObject({
    failureReason: 'insufficient_funds',
    failureMessage: expect.stringMatching(/^The payer has too little USDC/),
    latestDelivery: null,
  })
  for (const [query, field] of [
    ['status=paid', 'status'],
    ['endpointId=se_1', 'endpointId'],
    ['payer=0x12', 'payer'],
    ['from=yesterday', 'from'],
    ['to=x', 'to'],
    ['minAmountUsdc=0', 'minAmountUsdc'],
    ['maxAmountUsdc=1e9', 'maxAmountUsdc'],
  ] as const) {
    expect(await list(query)).toEqual([400, expect.stringMatching(new RegExp(`^${field} must`))])
  }
})

test('an owner sees the signed payment header, which the service builds again from the stored payment', async () => {
  const { platform } = till.service
  for (const version of [1, 2] as const) {
    const signed = await pay()
    const header = version === 1 ? signed.header : encodeHeader(payloadV2(signed))
    const { paymentId } = (await redeemToEnd(seller, header)).body
    const path = `/v0/platform/projects/${seller.project.id}/payments/${paymentId}/header`
    const { status, body } = await platform.get(path)
    expect([status, body.isRebuilt, body.name]).toEqual([
      200,
      true,
      version === 1 ? 'X-PAYMENT' : 'PAYMENT-SIGNATURE',
    ])
    const [shown, came] = [decodePaymentHeader(body.value), decodePaymentHeader(header)] as any[]
    expect(shown.payload.payload).toEqual(came.payload.payload)
    expect((await redeem(seller, body.value)).body.reason).toBe('duplicate_settlement')
    expect((await seller.get(path)).status).toBe(403)
    const other = path.replace(seller.project.id, 'prj_none')
    expect((await platform.get(other)).status).toBe(404)
  }
})

test('if the details of a payment were deleted, a request for its payment header gets status 410', async () => {
  const { platform, database } = till.service
  const { paymentId } = (await redeemToEnd(seller, (await pay()).header)).body
  const path = `/v0/platform/projects/${seller.project.id}/payments/${paymentId}/header`
  await database.pool.query(
    `update payments set signature = '', details_removed_at = clock_timestamp() where id = $1`,
    [paymentId],
  )
  expect(await platform.get(path)).toMatchObject({
    status: 410,
    body: { error: 'expired', message: 'The signature of this payment is no longer kept' },
  })
})
