/**
 * Tests offers of sellers that a purse (wallet) does not sign. Each test case checks that no signature reaches the
 * seller.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  type Buyer,
  newBuyer,
  type Seller,
  startPurseTill,
  startSeller,
  type Terms,
} from '../../support/purse/purseScene.ts'
import { SEPOLIA, type TestTill } from '../../support/till/till.ts'
import '../../support/long.ts'

const DENIED = `0x${'de'.repeat(20)}`
let till: TestTill
let seller: Seller
let buyer: Buyer
let mandateId: string
beforeAll(async () => {
  till = await startPurseTill({ env: { DENIED_PAYEES: DENIED } })
})
beforeEach(async () => {
  seller = startSeller(till)
  buyer = await newBuyer(till)
  mandateId = await buyer.giveMandate({ hosts: [seller.host] })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
})

/** Expects that a purchase ends with the given reason, and that the purse (wallet) has signed nothing. */
async function refused(reason: string, more: Parameters<Buyer['pay']>[1] = {}): Promise<void> {
  const { body } = await buyer.pay(seller.url, more)
  expect(body).toMatchObject({ state: 'refused', reason, payment: null, response: null })
  expect(seller.received).toEqual([])
  expect(await buyer.mandate(mandateId)).toMatchObject({ reservedUsdc: '0' })
  await seller[Symbol.asyncDispose]()
}

const OTHER_ASSET = `0x${'11'.repeat(20)}`
const OFFERS: [string, Partial<Terms>, string][] = [
  ['another scheme', { scheme: 'upto' }, 'no_offer'],
  ['another chain', { network: 'eip155:1' }, 'no_offer'],
  ['the mainnet of a testnet', { network: 'eip155:8453' }, 'no_offer'],
  ['another token', { asset: OTHER_ASSET }, 'no_offer'],
  ['Permit2', { extra: { assetTransferMethod: 'permit2' } }, 'no_offer'],
  ['a payment flow of another kind', { extra: { paymentFlow: 'escrow' } }, 'no_offer'],
  ['the domain of another token', { extra: { name: 'EURC', version: '2' } }, 'token_mismatch'],
  ['another version of the domain', { extra: { name: 'USDC', version: '1' } }, 'token_mismatch'],
  ['18 decimals', { amount: '10000000000000000' }, 'max_amount_exceeded'],
  ['an amount of 30 digits', { amount: '1'.repeat(30) }, 'malformed_challenge'],
  ['no amount', { amount: '0' }, 'malformed_challenge'],
  ['a negative amount', { amount: '-1' }, 'malformed_challenge'],
  ['an amount with a point', { amount: '0.01' }, 'malformed_challenge'],
  ['the zero address', { payTo: `0x${'0'.repeat(40)}` }, 'bad_payee'],
  ['the token as payee', { payTo: SEPOLIA.usdcAddress }, 'bad_payee'],
  ['no address as payee', { payTo: 'seller.eth' }, 'malformed_challenge'],
  ['a denied payee', { payTo: DENIED }, 'payee_denied'],
  ['a window of a second', { maxTimeoutSeconds: 1 }, 'bad_window'],
  ['a window of no time', { maxTimeoutSeconds: -60 }, 'bad_window'],
]

describe('a purse (wallet) does not sign a payment that breaks one of its rules', () => {
  for (const [what, terms, reason] of OFFERS) {
    test(what, async () => {
      Object.assign(seller.terms, terms)
      await refused(reason)
    })
  }

  test('a mandate (spending limit) with a misspelt limit is refused, because the service would otherwise ignore the limit', async () => {
    const path = `/v0/platform/projects/${buyer.project.id}/mandates`
    const given = { name: 'm', hosts: ['a.example.com'], maxPerPayment: '1', maxPerDay: '1' }
    const { body } = await till.service.platform.post(path, given)
    for (const [answer, known] of [
      [await till.service.platform.post(path, { ...given, maxPerDy: '1' }), 'task, hosts'],
      [
        await till.service.platform.patch(`${path}/${body.mandateId}`, { maxPerDy: '1' }),
        'name, task',
      ],
    ] as const) {
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringContaining(
          `The body must not hold "maxPerDy": the nearest field is maxPerDay, of ${known}`,
        ),
      ])
    }
  })

  test('a purse (wallet) refuses a payment to its own address', async () => {
    seller.terms.payTo = buyer.address
    await refused('bad_payee')
  })

  test('a purse (wallet) refuses an offer whose resource is at another host', async () => {
    seller.resource = 'https://bank.example.com/transfer'
    await refused('resource_of_another_host')
  })

  test('a purse (wallet) refuses a price above the maxAmount of the request', async () => {
    await refused('max_amount_exceeded', { maxAmount: '0.009999' })
  })

  test('a purse (wallet) refuses a price above the limits of the mandate (spending limit)', async () => {
    seller.terms.amount = '1000001'
    await refused('mandate_exceeded', { maxAmount: '5' })
  })

  test('a purse (wallet) refuses a price above its balance', async () => {
    buyer = await newBuyer(till, { fundsAtomic: 5_000n })
    mandateId = await buyer.giveMandate({ hosts: [seller.host] })
    await refused('insufficient_funds')
  })

  test('a purse (wallet) refuses a 402 response that is not an x402 challenge', async () => {
    seller.ask = () => new Response('pay me', { status: 402 })
    await refused('malformed_challenge')
  })

  test('a purse (wallet) refuses an x402 challenge of ten megabytes', async () => {
    seller.ask = () =>
      new Response(`{"x402Version":1,"accepts":[${' '.repeat(10_000_000)}]}`, { status: 402 })
    await refused('malformed_challenge')
  })

  test('a purse (wallet) refuses a payee that the mandate (spending limit) does not name', async () => {
    await till.service.platform.patch(
      `/v0/platform/projects/${buyer.project.id}/mandates/${mandateId}`,
      { payees: [DENIED.replace('de', 'aa')] },
    )
    await refused('payee_not_in_mandate')
  })

  test('a stopped purse (wallet) refuses every payment until it is resumed', async () => {
    const purse = `/v0/platform/projects/${buyer.project.id}/purse`
    await till.service.platform.post(`${purse}/stop`)
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'refused', reason: 'frozen', payment: null })
    await till.service.platform.post(`${purse}/resume`)
    expect((await buyer.pay(seller.url)).body.state).toBe('answered')
  })

  test('a purse (wallet) refuses to pay a host if one of the mandates (spending limits) for this host is stopped, even if another mandate covers the host', async () => {
    await buyer.giveMandate({ hosts: [seller.host] })
    const path = `/v0/platform/projects/${buyer.project.id}/mandates/${mandateId}`
    await till.service.platform.patch(path, { state: 'stopped' })
    await refused('frozen')
  })

  test('a purse (wallet) refuses to pay a host if the mandate (spending limit) for this host is missing, ended, expired, or not yet valid', async () => {
    const path = `/v0/platform/projects/${buyer.project.id}/mandates/${mandateId}`
    await till.service.platform.delete(path)
    await buyer.giveMandate({ hosts: ['api.example.com'] })
    await buyer.giveMandate({ hosts: [seller.host], validUntil: '2020-01-01T00:00:00Z' })
    await buyer.giveMandate({ hosts: [seller.host], validFrom: '2100-01-01T00:00:00Z' })
    await buyer.giveMandate({ resources: [`http://${seller.host}/other`] })
    await refused('not_in_mandate')
  })

  test('without the owner’s decision, a purse (wallet) does not pay a new payee address at a known host, unless the mandate (spending limit) names the address', async () => {
    expect((await buyer.pay(seller.url)).body.state).toBe('answered')
    seller.terms.payTo = `0x${'ab'.repeat(20)}`
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'waiting', payment: null })
    expect(seller.received.length).toBe(1)
  })

  test('without the owner’s decision, a purse (wallet) does not pay a price that rose by more than the mandate (spending limit) allows, even in small steps', async () => {
    expect((await buyer.pay(seller.url)).body.state).toBe('answered')
    seller.terms.amount = '12001'
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'waiting', payment: null })
    seller.terms.amount = '12000'
    expect((await buyer.pay(seller.url)).body.state).toBe('answered')
    seller.terms.amount = '14000'
    expect((await buyer.pay(seller.url)).body.state).toBe('waiting')
  })

  test('if a price is above the limit askAbove of the mandate (spending limit), the purse (wallet) signs nothing before the owner’s decision', async () => {
    await buyer.giveMandate({ hosts: [seller.host], askAbove: '0.009' })
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'waiting', payment: null })
  })

  test('a purse (wallet) refuses a payment if the number of payments per minute that the mandate (spending limit) allows is used up', async () => {
    await buyer.giveMandate({ hosts: [seller.host], paymentsPerMinute: 1 })
    expect((await buyer.pay(seller.url)).body.state).toBe('answered')
    const { body } = await buyer.pay(seller.url)
    expect(body).toMatchObject({ state: 'refused', reason: 'too_many_payments' })
  })
})

test('the purse (wallet) chooses the cheapest offer that it can pay, and signs a payment that is valid for at most 120 seconds', async () => {
  seller.ask = () =>
    seller.challenge([
      { network: 'eip155:8453', amount: '1' },
      { amount: '20000' },
      { amount: '10000', maxTimeoutSeconds: 31_536_000 },
    ])
  const { body } = await buyer.pay(seller.url)
  expect(body.terms?.amountUsdc).toBe('0.01')
  expect(body.payment!.validBefore).toBeLessThanOrEqual(Math.floor(Date.now() / 1000) + 120)
})

test('a purchase follows no HTTP redirect, neither before nor after the payment', async () => {
  seller.ask = () => Response.redirect('https://elsewhere.example/', 302)
  expect((await buyer.pay(seller.url)).body).toMatchObject({
    state: 'answered',
    status: 302,
    payment: null,
  })
  seller.ask = () => seller.challenge()
  seller.serve = async () => Response.redirect('https://elsewhere.example/', 307)
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({ state: 'answered', status: 307, payment: { state: 'open' } })
})

test('neither a quote (a request for the price) nor the purchase of a resource without a price signs a payment', async () => {
  const { body: quote } = await buyer.post('/v0/purse/quote', { url: seller.url })
  expect(quote).toMatchObject({ state: 'quoted', terms: { amountUsdc: '0.01' }, payment: null })
  seller.ask = () => new Response('free')
  const { body } = await buyer.pay(seller.url)
  expect(body).toMatchObject({
    state: 'answered',
    status: 200,
    payment: null,
    response: { body: 'free' },
  })
  expect(seller.received).toEqual([])
})

test('a mandate (spending limit) may have any name without control characters', async () => {
  const path = `/v0/platform/projects/${buyer.project.id}/mandates`
  const give = async (name: string) => {
    const terms = { name, hosts: ['a.example'], maxPerPayment: '1', maxTotal: '1' }
    return (await till.service.platform.post(path, terms)).status
  }
  for (const name of ['Capacity {cc} p', 'Köln 東京', '\\d'])
    expect([name, await give(name)]).toEqual([name, 201])
  for (const name of ['a\nb', 'a\u0085b', '']) expect([name, await give(name)]).toEqual([name, 400])
})

test('a mandate (spending limit) or a purchase that does not exist gets status 404', async () => {
  const { platform } = till.service
  const base = '/v0/platform/projects'
  const given = { name: 'Data', hosts: [seller.host], maxPerPayment: '1', maxTotal: '1' }
  for (const { status, body } of [
    await platform.get(`${base}/${buyer.project.id}/mandates/man_000000000000000000000000`),
    await platform.post(`${base}/prj_000000000000000000000000/mandates`, given),
    await buyer.get('/v0/purse/payments/pur_000000000000000000000000'),
  ]) {
    expect([status, body.message]).toEqual([404, expect.stringMatching(/ not found$/)])
  }
})

test('a project has at most 100 active mandates (spending limits)', async () => {
  const { pool } = till.service.database
  const full = (await newBuyer(till)).project.id
  await pool.query(
    `insert into mandates (id, project_id, name, network, hosts, resources, per_payment_atomic, total_atomic,
       payments_per_minute, rise_percent, valid_from, created_by)
     select 'man_' || n, $2, name, network, hosts, resources, per_payment_atomic, 1, payments_per_minute, rise_percent,
       valid_from, created_by
     from mandates, generate_series(2, 100) n where id = $1`,
    [mandateId, full],
  )
  const given = { name: 'Data', hosts: [seller.host], maxPerPayment: '1', maxTotal: '1' }
  const give = () => till.service.platform.post(`/v0/platform/projects/${full}/mandates`, given)
  expect((await give()).status).toBe(201)
  const { status, body } = await give()
  expect([status, body.message]).toEqual([409, 'A project has at most 100 live mandates'])
})

test('an invalid purchase request is refused with the name of the field', async () => {
  const cases: [object, string][] = [
    [{ url: 'ftp://a.example', maxAmount: '1' }, 'url must be'],
    [{ url: seller.url, maxAmount: '0' }, 'maxAmount'],
    [
      { url: new URL(`/${'%E2%82%AC'.repeat(223)}`, seller.url).href, maxAmount: '1' },
      'url must have a path of at most 2000 characters',
    ],
    [
      { url: seller.url, maxAmount: '1', headers: { 'X-Payment': 'e30=' } },
      'headers must not hold x-payment',
    ],
    [
      { url: seller.url, maxAmount: '1', headers: { Payment_Signature: 'e30=' } },
      'headers must not hold payment_signature',
    ],
    [{ url: seller.url, maxAmount: '1', method: 'GET', body: 'x' }, 'body must be absent'],
    [{ url: seller.url, maxAmount: '1', body: { id: 2 ** 53 } }, 'body must hold numbers beyond'],
    [
      { url: seller.url, maxAmount: '1', tool: { name: 't', arguments: { id: 2 ** 53 } } },
      'tool.arguments must hold numbers beyond',
    ],
    ...[{ method: 'POST' }, { body: 'x' }].map((more): [object, string] => [
      { url: seller.url, maxAmount: '1', tool: { name: 't' }, ...more },
      'method and body must be absent where tool is there',
    ]),
  ]
  for (const [body, message] of cases) {
    const answer = await buyer.post('/v0/purse/pay', body, { 'idempotency-key': 'bad' })
    expect(answer.status).toBe(400)
    expect((answer.body as { message: string }).message).toContain(message)
  }
  const { status, body } = await buyer.post('/v0/purse/pay', { url: seller.url, maxAmount: '1' })
  expect([status, (body as { message: string }).message]).toEqual([
    400,
    'Idempotency-Key must be there: a repeated request must not pay twice',
  ])
})

test('an API key needs the scope purse:pay to buy, and a new API key has no scope of the purse (wallet) unless somebody adds it', async () => {
  const { body } = await till.service.platform.post('/v0/platform/projects', { name: 'New' })
  expect(
    (body as { scopes: string[] }).scopes.filter((scope) => scope.startsWith('purse')),
  ).toEqual([])
  const reader = await till.service.newAgent({ scopes: ['purse:read'] })
  const answer = await reader.post(
    '/v0/purse/pay',
    { url: seller.url, maxAmount: '1' },
    { 'idempotency-key': 'a' },
  )
  expect(answer.status).toBe(403)
})
