import { createHash } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { signWebhook } from '../../shared/events/webhookSignature.ts'
import { encodeHeader } from '../../shared/till/x402v2.ts'
import { type Receiver, startReceiver } from '../support/events/receiver.ts'
import { SEPOLIA } from '../support/till/devnetPayment.ts'
import { CHALLENGE } from '../support/till/headers/challenge.ts'
import { PATHS } from './audit/auditWebhooks.ts'
import type { Delivered } from './audit/evidence.ts'

/**
 * Tells how the webhook receiver responds: with status 200, with status 500, with a connection reset, or not at all.
 */
export type Mood = 'well' | 'failing' | 'resetting' | 'silent'

/** Describes the seller's own server, which serves the paid resource and receives webhooks. */
export type Shop = AsyncDisposable & {
  port: number
  /** Holds the secret with which the service signs every webhook to this server. */
  secret: string
  mood: Mood
  /** Ends the requests that the webhook receiver has left without a response. */
  endSilence(): void
  /** Is called for every webhook to which the receiver responds with status 200. */
  onTaken: () => void
  /**
   * Settles a payment for the resource of another seller, who sells without this service. @returns the hash of the
   * payment’s transaction
   */
  settle: (header: string) => Promise<string>
  delivered(): Delivered[]
}

const PAID_CHALLENGE = encodeHeader({
  x402Version: 2,
  accepts: [
    {
      scheme: 'exact',
      network: SEPOLIA.caip2,
      amount: '10000',
      asset: SEPOLIA.usdcAddress,
      payTo: `0x${'5e'.repeat(20)}`,
      maxTimeoutSeconds: 60,
      extra: { name: SEPOLIA.eip712Name, version: SEPOLIA.eip712Version },
    },
  ],
})

/** Starts the seller's server. */
export async function startShop(): Promise<Shop> {
  const statuses = new WeakMap<object, number>()
  const silenced = new Set<ServerResponse>()
  const receiver: Receiver = await startReceiver((request, response) => {
    const answer = (status: number, body: string) => {
      statuses.set(request, status)
      response.writeHead(status).end(body)
    }
    if (shop.mood === 'failing') return answer(500, 'no')
    if (shop.mood === 'resetting') return response.socket?.destroy()
    if (shop.mood === 'silent') return silenced.add(response)
    if (request.path === PATHS.resource) return answer(402, CHALLENGE)
    if (request.path.startsWith(PATHS.paid)) {
      const header = request.headers['payment-signature']
      if (typeof header !== 'string') {
        response.writeHead(402, { 'payment-required': PAID_CHALLENGE }).end('{}')
        return
      }
      void shop.settle(header).then(
        (transaction) => {
          const said = encodeHeader({ success: true, transaction, network: SEPOLIA.caip2 })
          response.writeHead(200, { 'payment-response': said }).end('{"tempC":7}')
        },
        () => response.writeHead(503).end('busy'),
      )
      return
    }
    shop.onTaken()
    answer(200, 'ok')
  })
  const shop: Shop = {
    port: receiver.port,
    secret: `whsec_${'c'.repeat(64)}`,
    mood: 'well',
    onTaken() {},
    settle: () => Promise.reject(new Error('there is no chain yet')),
    endSilence() {
      // The test destroys the socket. If only the response object were destroyed, Bun’s server would send an empty
      // response of status 200 over a kept-open connection.
      for (const response of silenced) response.socket?.destroy()
      silenced.clear()
    },
    delivered: () =>
      receiver.requests
        .filter(({ path }) => path === PATHS.payments || path === PATHS.events)
        .map((request): Delivered => {
          const { body, headers, path } = request
          return {
            path,
            idempotencyKey: String(headers['x-service-idempotency-key']),
            event: String(headers['x-service-event']),
            subjectId: subjectOf(body),
            bodyHash: createHash('sha256').update(body).digest('hex'),
            genuine: headers['x-service-signature'] === signWebhook({ secret: shop.secret, body }),
            status: request.answeredMs > 0 ? (statuses.get(request) ?? null) : null,
          }
        }),
    async [Symbol.asyncDispose]() {
      shop.endSilence()
      await receiver[Symbol.asyncDispose]()
    },
  }
  return shop
}

/** Returns the payment id in a receipt. For a webhook event, returns the id of its payment or message. */
function subjectOf(bytes: Buffer): string | null {
  const { body, data } = JSON.parse(bytes.toString('utf8'))
  return body?.paymentId ?? data?.paymentId ?? data?.messageId ?? null
}
