import { expect, test } from 'bun:test'
import {
  type McpPaywallOptions,
  requirePayment,
} from '../../../../api/client/paywalls/mcpPaywall.ts'
import { ANSWER_MAX_BYTES } from '../../../../api/client/paywalls/paidAnswers.ts'
import {
  CHALLENGE,
  newPaymentHeader,
  REQUIRED,
  RESOURCE,
  refusal,
  SETTLED,
  shopService,
} from '../../../support/till/headers/shopService.ts'
import { encodeHeader } from '../../../support/till/headers/x402v2.ts'

type Result = { content: { type: 'text'; text: string }[]; isError?: boolean; _meta?: object }
const text = (said: string): Result => ({ content: [{ type: 'text', text: said }] })
const { headers: _, ...OFFER } = CHALLENGE

function open(
  callback: (args: object, extra: object) => Result | Promise<Result> = () => text('Fine.'),
  options: Partial<McpPaywallOptions> = {},
) {
  const service = shopService()
  const price = { purser: service.purser, amount: '0.01', resource: RESOURCE, ...options }
  const tool = requirePayment(price, callback)
  const ask = (_meta?: object, args = {}): Promise<any> =>
    tool(args, _meta === undefined ? {} : { _meta })
  return { service, ask, tool }
}
const isDuplicate = (result: any) => result.structuredContent?.error === 'duplicate_settlement'

test('a call of a paid MCP tool without payment gets a challenge in the x402 version that the seller chose', async () => {
  for (const [options, shown, _meta] of [
    [{}, REQUIRED, { 'x402/error': REQUIRED }],
    [{ x402Version: 2 }, REQUIRED, { 'x402/error': REQUIRED }],
    [{ x402Version: 1 }, OFFER, {}],
  ] as const) {
    expect(await open(undefined, options).ask()).toStrictEqual({
      isError: true,
      structuredContent: shown as never,
      content: [{ type: 'text', text: JSON.stringify(shown) }],
      _meta,
    })
  }
})

test('an x402 challenge of version 2 keeps non-ASCII letters in its description', async () => {
  const { service, ask } = open()
  const required = {
    ...REQUIRED,
    resource: { url: RESOURCE, description: 'Wetter für Łódź – 天気' },
  }
  service.answer = () => ({
    ...CHALLENGE,
    headers: { 'PAYMENT-REQUIRED': encodeHeader(required) },
  })
  expect((await ask()).structuredContent).toEqual(required)
})

test('if a refused tool call has no payment offer, the MCP result shows the reason and the settlement', async () => {
  for (const name of ['PAYMENT-RESPONSE', 'X-PAYMENT-RESPONSE']) {
    const { service, ask } = open()
    const settlement = { success: false, errorReason: 'settlement_pending' }
    service.answer = () =>
      refusal('settlement_pending', { headers: { [name]: encodeHeader(settlement) } })
    const { structuredContent, _meta } = await ask({ 'x402/payment': newPaymentHeader() })
    expect(structuredContent).toMatchObject({ error: 'settlement_pending', status: 402 })
    expect(_meta).toStrictEqual({ 'x402/payment-response': settlement })
  }
})

test('the MCP paywall accepts a payment as text or as an object, under any of three keys of _meta such as x402/payment', async () => {
  for (const key of ['x402/payment', 'x402.payment', 'x-payment']) {
    for (const isObject of [false, true]) {
      const header = newPaymentHeader()
      const payment = isObject ? JSON.parse(atob(header)) : header
      const { service, ask } = open()
      const paid = await ask({ [key]: payment })
      expect([key, isObject, paid.content]).toEqual([key, isObject, text('Fine.').content])
      expect(service.calls[0]?.body.paymentHeader).toEqual(payment)
    }
  }
  for (const value of [null, 7, true, undefined]) {
    const { service, ask } = open()
    expect([value, (await ask({ 'x402/payment': value })).isError]).toEqual([value, true])
    expect(service.keys()).toEqual([])
  }
})

test('a paid call gets the tool’s result and the settlement, and a repeated call gets the same result and settlement', async () => {
  let calls = 0
  const { ask } = open(() => {
    calls++
    return { ...text('Fine.'), _meta: { own: 1 } }
  })
  const payment = { 'x402/payment': newPaymentHeader() }
  const expected = { ...text('Fine.'), _meta: { own: 1, 'x402/payment-response': SETTLED } }
  for (let n = 0; n < 2; n++) expect(await ask(payment)).toEqual(expected)
  expect(isDuplicate(await ask(payment, { city: 'Oslo' }))).toBe(true)
  expect(calls).toBe(1)
})

test('if a caller with other credentials repeats a paid call, this caller does not get the stored result', async () => {
  const http = (headers: Record<string, string>) => ({
    http: { req: new Request(RESOURCE, { headers }) },
  })
  for (const [payer, stranger] of [
    [{ authInfo: { token: 'a' } }, { authInfo: { token: 'b' } }],
    [{ authInfo: { token: 'a' } }, {}],
    [{ http: { authInfo: { token: 'a' } } }, { http: { authInfo: { token: 'b' } } }],
    [
      { requestInfo: { headers: { cookie: 'id=a' } } },
      { requestInfo: { headers: { cookie: 'id=b' } } },
    ],
    [
      { requestInfo: { headers: { authorization: 'Bearer a' } } },
      { requestInfo: { headers: { authorization: 'Bearer b' } } },
    ],
    [http({ cookie: 'id=a' }), http({ cookie: 'id=b' })],
    [http({ 'X-API-Key': 'a' }), http({})],
    [{ requestInfo: { headers: { 'x-auth-token': 'a' } } }, {}],
    [http({ authorization: 'Bearer a' }), http({})],
  ]) {
    const { tool } = open()
    const _meta = { 'x402/payment': newPaymentHeader() }
    const askAs = (extra: object = {}): Promise<any> => tool({}, { _meta, ...extra })
    for (let n = 0; n < 2; n++) expect((await askAs(payer)).content).toEqual(text('Fine.').content)
    expect([payer, isDuplicate(await askAs(stranger))]).toEqual([payer, true])
  }
})

test('a payer who connects again gets the stored result in the new MCP session', async () => {
  const { tool } = open()
  const _meta = { 'x402/payment': newPaymentHeader() }
  for (const id of ['s1', 's2']) {
    const requestInfo = { headers: { 'mcp-session-id': id, 'user-agent': `client ${id}` } }
    const answer: any = await tool({}, { _meta, requestInfo } as object)
    expect(answer.content).toEqual(text('Fine.').content)
  }
})

test('after a tool fails, the payer may repeat the call with the same payment', async () => {
  let calls = 0
  const { ask } = open(() => {
    calls++
    if (calls === 1) throw new Error('broken')
    return { ...text('Fine.'), isError: calls === 2 }
  })
  const payment = { 'x402/payment': newPaymentHeader() }
  expect(await ask(payment).catch((error) => error.message)).toBe('broken')
  expect((await ask(payment)).isError).toBe(true)
  for (let n = 0; n < 2; n++) expect((await ask(payment)).isError).toBe(false)
  expect(calls).toBe(3)
})

test('a tool result of up to 256 kB is stored for repeated calls, and a repeated call for a longer result is refused', async () => {
  const empty = JSON.stringify({ ...text(''), _meta: { 'x402/payment-response': SETTLED } })
  for (const [chars, isStored] of [
    [ANSWER_MAX_BYTES - empty.length, true],
    [ANSWER_MAX_BYTES - empty.length + 1, false],
  ] as const) {
    const { ask } = open(() => text('a'.repeat(chars)))
    const payment = { 'x402/payment': newPaymentHeader() }
    expect((await ask(payment)).content[0].text).toHaveLength(chars)
    expect([chars, !isDuplicate(await ask(payment))]).toEqual([chars, isStored])
  }
})
