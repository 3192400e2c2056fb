/**
 * Tests which redeem calls (which take a payment) count against the limit of new payments, and which limits apply to
 * the other redeem calls.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startApi } from '../../../../../api/http/server.ts'
import { countRequests } from '../../../../../sql/account/keys/rateWindows.ts'
import { freePlace } from '../../../../../sql/account/keys/redeemPlaces.ts'
import { updateLimits } from '../../../../../sql/account/projects/projectLimits.ts'
import { silentLog } from '../../../../support/logs.ts'
import { withinOneMinute } from '../../../../support/rateWindow.ts'
import { type Agent, type Answer, createClient } from '../../../../support/service.ts'
import { encodeHeader, payloadV2 } from '../../../../support/till/headers/x402v2.ts'
import { deployWallet } from '../../../../support/till/smartWallet.ts'
import {
  fund,
  headerOf,
  newPayer,
  pay,
  payer,
  redeem,
  startTestTill,
  type TestTill,
} from '../../../../support/till/till.ts'
import { waitFor } from '../../../../support/waitFor.ts'
import '../../../../support/long.ts'

const LIMIT = 6
/** Sets the limit of all redeem calls (which take a payment) of one project. */
const CALLS = 12 * LIMIT

let till: TestTill
beforeAll(async () => {
  till = await startTestTill({
    env: { RATE_LIMIT_REQUESTS: String(LIMIT), SETTLEMENT_WAIT_MS: '8000' },
  })
})
afterAll(() => till[Symbol.asyncDispose]())

const budgetOf = ({ headers }: Answer) => [
  headers.get('x-ratelimit-limit'),
  headers.get('x-ratelimit-remaining'),
]
const headers = (count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, async () => (await pay()).header))
const expectRefused = (answer: Answer, limit: number) => {
  expect(answer).toMatchObject({ status: 429, body: { error: 'rate_limited' } })
  expect(budgetOf(answer)).toEqual([String(limit), '0'])
  expect(Number(answer.headers.get('retry-after'))).toBeWithin(1, 61)
}

/** Makes new payments until the limit of the project is reached, and checks that the next payment is refused. */
async function fillPlaces(seller: Agent, count: number): Promise<void> {
  for (const header of await headers(count)) {
    expect(await redeem(seller, header)).toMatchObject({ status: 200, body: { ok: true } })
  }
  expectRefused(await redeem(seller, (await pay()).header), LIMIT)
}

/** Makes payment headers that cannot be decoded, or whose fault the service finds without the chain. */
async function worthless(): Promise<string[]> {
  const { authorization } = await pay()
  return [
    'anything',
    btoa('{}'),
    (await pay({ to: payer.address })).header,
    (await pay({ value: 9_999n })).header,
    (await pay({ validBefore: 1n })).header,
    (await pay({ validAfter: 4_000_000_000n, validBefore: 4_000_000_001n })).header,
    // This signature has 64 bytes, so only an ordinary account can have made it. But it is not the payer's signature.
    headerOf(authorization, `0x${'11'.repeat(64)}`),
  ]
}

test('payment headers that cannot be decoded, or that the service refuses without asking the chain, do not use up the limit of payments', async () => {
  const seller = await till.newSeller()
  await withinOneMinute()
  const kinds = await worthless()
  const strange = await Promise.all(
    Array.from({ length: 5 }, () => kinds)
      .flat()
      .map((header) => redeem(seller, header)),
  )
  for (const { status, body } of strange) {
    expect({ status, ...body }).toMatchObject({ status: 200, ok: false, stage: 'verify' })
  }
  for (const [n, header] of (await headers(LIMIT)).entries()) {
    const answer = await redeem(seller, header)
    expect(answer).toMatchObject({ status: 200, body: { ok: true } })
    expect(budgetOf(answer)).toEqual([String(LIMIT), String(LIMIT - n - 1)])
  }
  expectRefused(await redeem(seller, (await pay()).header), LIMIT)
  expect((await redeem(seller, 'anything')).status).toBe(200)
})

test('a project makes at most as many new payments a minute as its limit allows, even with two API processes', async () => {
  const { service } = till
  const other = startApi(service.config, service.database.url, silentLog)
  try {
    const seller = await till.newSeller()
    const clients = [seller, createClient(`http://127.0.0.1:${other.port}`, seller.key)]
    await withinOneMinute()
    const mixed = [...(await headers(LIMIT * 3)), ...(await worthless())]
    const answers = await Promise.all(
      mixed.map((header, n) => redeem(clients[n % clients.length]!, header)),
    )
    const refused = answers.filter(({ status }) => status === 429).length
    expect(refused).toBeGreaterThanOrEqual(LIMIT * 2)
    for (const header of await headers(LIMIT)) await redeem(seller, header)
    expectRefused(await redeem(seller, (await pay()).header), LIMIT)
    const { body } = await seller.get('/v0/payments')
    expect(body.payments).toHaveLength(LIMIT)
  } finally {
    await other.stop()
  }
})

test('payments that are refused because other calls have used up the limit of payments do not count against this limit', async () => {
  const seller = await till.newSeller()
  const { pool } = till.service.database
  await withinOneMinute()
  const { resetsAt } = await countRequests(pool, `${seller.project.id}:redeem`, LIMIT)
  for (const header of await headers(LIMIT)) expectRefused(await redeem(seller, header), LIMIT)
  for (let n = 0; n < LIMIT; n++) await freePlace(pool, seller.project.id, resetsAt)
  await fillPlaces(seller, LIMIT)
})

test('payments that are refused because of the daily limit do not use up the limit of payments', async () => {
  const seller = await till.newSeller()
  const { pool } = till.service.database
  await updateLimits(pool, seller.project.id, { dailySettlements: 1 })
  await withinOneMinute()
  expect((await redeem(seller, (await pay()).header)).body).toMatchObject({ ok: true })
  for (const header of await headers(LIMIT * 2)) {
    const { body } = await redeem(seller, header)
    expect(body).toMatchObject({ ok: false, reason: 'settlement_limit_reached' })
  }
  await updateLimits(pool, seller.project.id, { dailySettlements: 100 })
  await fillPlaces(seller, LIMIT - 1)
})

test('payments whose payment identifier another payment already has do not use up the limit of payments', async () => {
  const seller = await till.newSeller()
  const extensions = { 'payment-identifier': { info: { required: false, id: 'order_0123456789' } } }
  const named = async () => redeem(seller, encodeHeader(payloadV2(await pay(), { extensions })))
  await withinOneMinute()
  expect((await named()).body).toMatchObject({ ok: true })
  for (let n = 1; n < LIMIT * 2; n++) {
    const answer = await named()
    expect(answer.body).toMatchObject({ ok: false, reason: 'payment_identifier_conflict' })
    // From call number LIMIT on, the response headers show the limit of all redeem calls, and no longer the limit of
    // new payments.
    expect(budgetOf(answer)[0]).toBe(String(n < LIMIT ? LIMIT : CALLS))
  }
  await fillPlaces(seller, LIMIT - 1)
})

test('payments of a wallet without money fail on the chain, and count against the limit of payments', async () => {
  const seller = await till.newSeller()
  const account = await newPayer(till.client, 0n)
  await withinOneMinute()
  for (let n = 0; n < LIMIT; n++) {
    const { body } = await redeem(seller, (await pay({}, { account })).header)
    expect(body).toMatchObject({ ok: false, stage: 'verify', paymentId: expect.any(String) })
  }
  expectRefused(await redeem(seller, (await pay({}, { account })).header), LIMIT)
})

test('even if the limit of new payments is used up, a redeem call for an existing payment succeeds, at most 60 times a minute', async () => {
  await using slow = await startTestTill({
    env: { RATE_LIMIT_REQUESTS: String(LIMIT), SETTLEMENT_WAIT_MS: '50' },
  })
  const seller = await slow.newSeller()
  await slow.client.setAutomine(false)
  await withinOneMinute()
  const [first, ...rest] = await headers(LIMIT)
  const pending = { status: 200, body: { reason: 'settlement_pending' } }
  for (const header of [first!, ...rest])
    expect(await redeem(seller, header)).toMatchObject(pending)
  expectRefused(await redeem(seller, (await pay()).header), LIMIT)
  const repeats = (count: number) =>
    Promise.all(Array.from({ length: count }, () => redeem(seller, first!)))
  for (const answer of await repeats(20)) expect(answer).toMatchObject(pending)
  await slow.client.setAutomine(true)
  await waitFor('the settlements', async () => {
    const { rowCount } = await slow.service.database.pool.query(
      `select from payments where state = 'settled'`,
    )
    return rowCount === LIMIT
  })
  expect((await redeem(seller, rest[0]!)).body).toMatchObject({ ok: true })
  expect((await repeats(40)).map(({ status }) => status)).toEqual(Array(40).fill(200))
  expectRefused(await redeem(seller, first!), 60)
})

test('payments whose signatures only the chain can check have a separate limit', async () => {
  const seller = await till.newSeller()
  const wallet = await deployWallet(till.client, payer.address)
  await fund(till.client, wallet, 10_000n)
  const forged = async () =>
    headerOf((await pay({ from: wallet })).authorization, `0x${'ab'.repeat(66)}`)
  await withinOneMinute()
  for (let n = 1; n < LIMIT; n++) {
    expect((await redeem(seller, await forged())).body).toMatchObject({ ok: false })
  }
  const { header } = await pay({ from: wallet })
  expect((await redeem(seller, header)).body).toMatchObject({ ok: true })
  expectRefused(await redeem(seller, await forged()), LIMIT)
  // The payment of the wallet is stored now, so this call needs no check on the chain.
  expect((await redeem(seller, header)).body).toMatchObject({ reason: 'duplicate_settlement' })
  for (const one of await headers(LIMIT)) {
    expect(await redeem(seller, one)).toMatchObject({ status: 200, body: { ok: true } })
  }
})

test('all redeem calls (which take a payment) of a project together have a limit, so that worthless payment headers take little processor time', async () => {
  const seller = await till.newSeller()
  await withinOneMinute()
  const answers: Answer[] = []
  for (let n = 0; n <= CALLS; n++) answers.push(await redeem(seller, 'anything'))
  expect(answers.slice(0, CALLS).map(({ status }) => status)).toEqual(Array(CALLS).fill(200))
  expect(budgetOf(answers[LIMIT]!)).toEqual([String(CALLS), String(CALLS - LIMIT - 1)])
  expectRefused(answers[CALLS]!, CALLS)
})

test('a call with a wrong resource, a wrong body or a repeated Idempotency-Key does not use up the limit of payments', async () => {
  const seller = await till.newSeller()
  const [first, ...rest] = await headers(LIMIT)
  const keyed = { 'idempotency-key': 'once' }
  await withinOneMinute()
  const { body } = await redeem(seller, first, {}, keyed)
  for (let n = 0; n < LIMIT; n++) {
    expect((await redeem(seller, first, {}, keyed)).body).toEqual(body)
    const wrong = { resource: 'https://api.example.com/other' }
    expect((await redeem(seller, first, wrong)).status).toBe(400)
    expect((await redeem(seller, first, { resource: 'no url' })).status).toBe(400)
    expect((await redeem(seller, first, { unknown: 1 })).status).toBe(400)
  }
  for (const header of rest) {
    expect(await redeem(seller, header)).toMatchObject({ status: 200, body: { ok: true } })
  }
})

test('a redeem call (which takes a payment) above its limit stores no Idempotency-Key', async () => {
  const seller = await till.newSeller()
  await withinOneMinute()
  await fillPlaces(seller, LIMIT)
  const refused = await redeem(seller, (await pay()).header, {}, { 'idempotency-key': 'late' })
  expectRefused(refused, LIMIT)
  const { rows } = await till.service.database.pool.query(
    'select key from idempotency_keys where project_id = $1',
    [seller.project.id],
  )
  expect(rows).toEqual([])
})
