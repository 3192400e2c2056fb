/**
 * Sells a resource over x402 without a library. The seller program asks for 0.01 USDC, redeems the payment and checks
 * the webhook.
 */
import { createHmac } from 'node:crypto'

const {
  KEY,
  WEBHOOK_SECRET = '',
  API = 'http://127.0.0.1:3000',
  PORT = '4000',
  ORIGIN,
} = process.env
const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' }
const till = async (operation: string, body: object) => {
  const init = { method: 'POST', headers, body: JSON.stringify(body) }
  return (await fetch(`${API}/v0/payments/${operation}`, init)).json() as any
}
const server = Bun.serve({
  port: Number(PORT),
  hostname: '127.0.0.1',
  async fetch(request) {
    const { origin, pathname } = new URL(request.url)
    if (pathname === '/hook') {
      const body = await request.text()
      const expected = `sha256=${createHmac('sha256', WEBHOOK_SECRET).update(body).digest('hex')}`
      // With an empty secret, the program treats every signature as invalid, because anybody could sign with such a
      // secret.
      const genuine =
        WEBHOOK_SECRET !== '' && request.headers.get('x-service-signature') === expected
      console.log(genuine ? 'webhook, signature valid:' : 'webhook, signature INVALID:', body)
      return new Response(null, { status: genuine ? 200 : 400 })
    }
    // The environment variable ORIGIN takes precedence. Behind a proxy, the server sees another origin than the buyer's
    // URL has.
    const price = { resource: (ORIGIN ?? origin) + pathname, amount: '0.01' }
    // Version 2 of x402 sends the payment in `payment-signature`, and version 1 sends it in `x-payment`.
    const paymentHeader =
      request.headers.get('payment-signature') ?? request.headers.get('x-payment')
    if (!paymentHeader) {
      const { headers, ...challenge } = await till('challenge', price)
      return Response.json(challenge, { status: 402, headers })
    }
    const result = await till('redeem', { ...price, paymentHeader })
    if (result.ok) return new Response('The weather is fine.\n', { headers: result.headers })
    // While a settlement is pending, the payer gets no new challenge. The wallet would answer it with a second payment.
    const { reason, message, requirement } = result
    const body = reason === 'settlement_pending' ? { error: reason, message } : requirement
    return Response.json(body, { status: 402, headers: result.headers })
  },
})
console.log(`selling at http://127.0.0.1:${server.port}/weather`)
