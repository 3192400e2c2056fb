/**
 * Sends many redeem requests (which take a payment) at once from a separate process. Bun allows at most 256 open
 * requests in a process, so waiting redeem requests would block the other requests of the test.
 */
import type { Agent } from '../service.ts'

/**
 * Sets the milliseconds after which a redeem request (which takes a payment) without a response fails. The service
 * responds within SETTLEMENT_WAIT_MS.
 */
const DEADLINE_MS = 150_000

export type Redeemed = { status: number; body: any; ms: number }
type Order = { url: string; key: string; inFlight: number; bodies: unknown[]; insists: boolean }

/**
 * Sends all redeem requests, at most `inFlight` at a time. Returns the responses in the order of the requests.
 * @param insists tells whether a redeem request is repeated with the same Idempotency-Key while the service responds
 * 503 or pending, as a seller may do
 */
export async function redeemMany(
  { url, seller }: { url: string; seller: Pick<Agent, 'key'> },
  bodies: unknown[],
  { inFlight = bodies.length, insists = false }: { inFlight?: number; insists?: boolean } = {},
): Promise<Redeemed[]> {
  const order: Order = { url, key: seller.key, inFlight, bodies, insists }
  const child = Bun.spawn([process.execPath, import.meta.path], {
    stdin: new TextEncoder().encode(JSON.stringify(order)),
    stdout: 'pipe',
    stderr: 'inherit',
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '2000' },
  })
  return JSON.parse(await new Response(child.stdout).text())
}

async function work({ url, key, inFlight, bodies, insists }: Order): Promise<Redeemed[]> {
  const answers: Redeemed[] = []
  let next = 0
  const redeemOne = async (n: number) => {
    const startedMs = performance.now()
    const ask = () =>
      fetch(`${url}/v0/payments/redeem`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${key}`,
          ...(insists ? { 'idempotency-key': `redeem-${n}` } : {}),
        },
        body: JSON.stringify(bodies[n]),
        signal: AbortSignal.timeout(DEADLINE_MS),
      })
    let response = await ask()
    let body: any = await response.json()
    while (insists && (response.status === 503 || body.reason === 'settlement_pending')) {
      response = await ask()
      body = await response.json()
    }
    answers[n] = { status: response.status, body, ms: performance.now() - startedMs }
  }
  const lane = async () => {
    while (next < bodies.length) await redeemOne(next++)
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return answers
}

if (import.meta.main) {
  process.stdout.write(JSON.stringify(await work(await Bun.stdin.json())))
}
