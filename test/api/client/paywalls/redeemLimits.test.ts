/** Tests that strangers cannot fill the memory of a seller with payments that wait for the service. */
import { expect, test } from 'bun:test'
import { createPaywall } from '../../../../api/client/paywalls/paywall.ts'
import { Purser } from '../../../../api/client/purser.ts'
import { grant, newPaymentHeader, RESOURCE } from '../../../support/till/headers/shopService.ts'
import { waitFor } from '../../../support/waitFor.ts'

const PENDING_MAX = 500

function open(answer: (key: string | null) => Response | Promise<Response>) {
  const keys: (string | null)[] = []
  const purser = new Purser({
    apiKey: `loid-${'0'.repeat(64)}`,
    fetch: async ({ headers }) => {
      keys.push(headers.get('idempotency-key'))
      return answer(headers.get('idempotency-key'))
    },
  })
  const judge = createPaywall<string>({ purser, amount: '0.01' })
  return { keys, ask: (payment: string) => judge({ payment, resource: RESOURCE, asked: ['GET'] }) }
}

const tooMany = (retryAfter: string) =>
  Response.json(
    { error: 'rate_limited', message: 'Too many' },
    { status: 429, headers: { 'retry-after': retryAfter } },
  )

test('if a rate limit lasts long, a paid request gets a refusal at once, and the payer may send the same payment again later', async () => {
  let isLimited = true
  const { keys, ask } = open(() => (isLimited ? tooMany('50') : Response.json(grant())))
  const payment = newPaymentHeader()
  expect(await ask(payment)).toMatchObject({
    kind: 'refused',
    status: 503,
    headers: { 'retry-after': '50' },
    body: { error: 'unavailable' },
    challenge: null,
  })
  expect(keys).toHaveLength(1)
  isLimited = false
  expect((await ask(payment)).kind).toBe('paid')
  // The service charges a payment only once for each idempotency key, so the first and the second attempt must send the
  // same key.
  expect(keys[1]).toBe(keys[0]!)
})

test('if a rate limit ends soon, a paid request waits until it ends, and then gets its response', async () => {
  const { keys, ask } = open(() => (keys.length === 1 ? tooMany('1') : Response.json(grant())))
  expect((await ask(newPaymentHeader())).kind).toBe('paid')
  expect(keys).toHaveLength(2)
})

test('while 500 payments wait for the service, the next payment gets 503 at once and can be sent again', async () => {
  const held = Promise.withResolvers<void>()
  const { keys, ask } = open(async () => {
    // A call above the limit must not reach the service. If it does, all calls get their responses, so that the test
    // fails at once.
    if (keys.length > PENDING_MAX) held.resolve()
    await held.promise
    return Response.json(grant())
  })
  const waiting = Array.from({ length: PENDING_MAX }, () => ask(newPaymentHeader()))
  await waitFor('the calls of 500 payments', () => keys.length === PENDING_MAX)
  const further = newPaymentHeader()
  expect(await ask(further)).toMatchObject({
    kind: 'refused',
    status: 503,
    headers: { 'retry-after': '5' },
    body: { error: 'unavailable', message: expect.stringContaining('500 payments') },
    challenge: null,
  })
  held.resolve()
  for (const verdict of await Promise.all(waiting)) expect(verdict.kind).toBe('paid')
  expect(keys).toHaveLength(PENDING_MAX)
  expect((await ask(further)).kind).toBe('paid')
})
