import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Agent } from '../../../support/service.ts'
import {
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

const activity = async (query = '', agent = seller) =>
  await agent.get(`/v0/payments/activity${query}`)

test('the activity report sums a project’s income by day, endpoint and payer, and contains no income of other projects', async () => {
  const nothing = { count: 0, amountUsdc: '0', amountUsdcRaw: '0' }
  expect((await activity()).body).toEqual({
    since: expect.stringMatching(/T00:00:00\.000Z$/),
    ...nothing,
    activity: [],
    byDay: [],
    byEndpoint: [],
    byPayer: [],
    own: nothing,
    refunded: nothing,
  })
  const other = 'https://api.example.com/other'
  await registerEndpoint(till.service.database.pool, {
    projectId: seller.project.id,
    resource: other,
  })
  const paid: string[] = []
  for (const resource of [RESOURCE, RESOURCE, other]) {
    const { body } = await redeemToEnd(seller, (await pay()).header, { resource })
    expect(body.ok).toBe(true)
    paid.push(body.paymentId)
  }
  const refused = await redeem(seller, 'nonsense')
  expect(refused.body.ok).toBe(false)
  // The test moves the settlement of the first payment three days into the past, so that two days have income.
  await till.service.database.pool.query(
    `update payments set settled_at = settled_at - interval '3 days' where id = $1`,
    [paid[0]],
  )
  const one = { count: 1, amountUsdc: PRICE, amountUsdcRaw: '10000' }
  const two = { count: 2, amountUsdc: '0.02', amountUsdcRaw: '20000' }
  const three = { count: 3, amountUsdc: '0.03', amountUsdcRaw: '30000' }
  const { body } = await activity()
  expect(body).toMatchObject({ ...three, byDay: [two, one] })
  const [today, before] = body.byDay.map(({ day }: any) => Date.parse(day))
  expect(today - before).toBe(3 * 24 * 60 * 60 * 1000)
  expect(body.byEndpoint).toEqual([
    { endpointId: expect.stringMatching(/^se_/), urlPattern: RESOURCE, ...two },
    { endpointId: expect.stringMatching(/^se_/), urlPattern: other, ...one },
  ])
  expect(body.byPayer).toEqual([{ payerAddress: payer.address.toLowerCase(), ...three }])
  expect(body.activity.map(({ id }: any) => id)).toEqual([paid[2], paid[1], paid[0]])
  expect(body.activity[0]).toMatchObject({ status: 'settled', resourceUrl: other })
  const recent = (await activity('?days=2')).body
  expect(recent).toMatchObject({ ...two, byDay: [two] })
  expect(recent.activity.map(({ id }: any) => id)).toEqual([paid[2], paid[1]])
  const limited = (await activity('?limit=1')).body
  expect(limited).toMatchObject({ ...three, byDay: [two, one] })
  expect(limited.activity.map(({ id }: any) => id)).toEqual([paid[2]])
  expect((await activity('?limit=500')).body.activity).toHaveLength(3)
  const stranger = await till.newSeller({ resource: 'https://api.example.com/strange' })
  expect((await activity('', stranger)).body).toMatchObject(nothing)
})

test('the activity report covers a limited number of days, and needs a scope of its own', async () => {
  for (const days of ['0', '91', '-1', '1.5', 'x', '']) {
    const { status, body } = await activity(`?days=${days}`)
    expect([days, status, body.message]).toEqual([
      days,
      400,
      'days must be a whole number from 1 to 90',
    ])
  }
  expect((await activity('?days=90')).status).toBe(200)
  expect((await activity('?limit=0')).body.message).toBe(
    'limit must be a whole number of at least 1',
  )
  const bare = await till.service.newAgent({ scopes: ['mail:read'] })
  expect((await activity('', bare)).body.message).toBe('Missing required scope: payments:accept')
})

test('if a URL contains an unknown word instead of a payment id, the request gets status 404', async () => {
  for (const [word, message] of [
    ['intents', 'Not found'],
    ['spend-limits', 'Not found'],
    ['pay_0a1b2c3d4e5f60718293a4b5', 'Payment not found'],
    ['pay_none', 'Payment not found'],
  ]) {
    const { status, body } = await seller.get(`/v0/payments/${word}`)
    expect([word, status, body.error, body.message]).toEqual([word, 404, 'not_found', message])
  }
})
