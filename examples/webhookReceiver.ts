/**
 * Receives the webhooks that report payments. Set the environment variable WEBHOOK_SECRET to the endpoint's `whsec_…`,
 * and API to the URL of the service.
 */
import { InvalidWebhookError, verifyReceipt, verifyWebhook } from 'purser/client'

const { WEBHOOK_SECRET = '', API = 'http://127.0.0.1:3000', PORT = '4005' } = process.env
/** Reads the public keys of receipts. The program keeps no copy, because the service may add a key at any time. */
const readKeys = async (): Promise<any> => (await fetch(`${API}/.well-known/jwks.json`)).json()
/**
 * Holds the ids of the payments that the program has already handled. The header `X-Service-Idempotency-Key` is not
 * signed, so it proves no repeat. In production, store the payment ids in your database.
 */
const handled = new Set<string>()

async function receive(request: Request): Promise<Response> {
  // The webhook's signature covers the raw bytes of the body. Read them before any JSON parser does.
  const body = await request.text()
  try {
    const event = await verifyWebhook({ body, headers: request.headers, secret: WEBHOOK_SECRET })
    const keys = await readKeys()
    const { paymentId, amountUsdcRaw } = await verifyReceipt({ receipt: event.receipt, keys })
    if (!handled.has(paymentId)) {
      handled.add(paymentId)
      console.log(`payment ${paymentId}: ${Number(amountUsdcRaw) / 1e6} USDC`)
    }
    return new Response(null, { status: 204 })
  } catch (error) {
    if (error instanceof InvalidWebhookError) return new Response(error.message, { status: 400 })
    throw error
  }
}

const server = Bun.serve({ port: Number(PORT), hostname: '127.0.0.1', fetch: receive })
console.log(`receiving at http://127.0.0.1:${server.port}/hook`)
