/**
 * Many redeems at once, from a process of their own: of the 256 requests that Bun has open at most, those that wait
 * would block the very ones they wait for.
 */
import type { Agent } from './service.ts'

export type Redeemed = { status: number; body: any; ms: number }
type Order = { url: string; key: string; inFlight: number; bodies: unknown[] }

/** Redeems all bodies, `inFlight` at a time; answers in order. */
export async function redeemMany(
  { url, seller }: { url: string; seller: Pick<Agent, 'key'> },
  bodies: unknown[],
  inFlight = bodies.length,
): Promise<Redeemed[]> {
  const order: Order = { url, key: seller.key, inFlight, bodies }
  const child = Bun.spawn([process.execPath, import.meta.path], {
    stdin: new TextEncoder().encode(JSON.stringify(order)),
    stdout: 'pipe',
    stderr: 'inherit',
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: '2000' },
  })
  return JSON.parse(await new Response(child.stdout).text())
}

async function work({ url, key, inFlight, bodies }: Order): Promise<Redeemed[]> {
  const answers: Redeemed[] = []
  let next = 0
  const redeemOne = async (n: number) => {
    const startedMs = performance.now()
    const response = await fetch(`${url}/v0/payments/redeem`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify(bodies[n]),
    })
    const body = await response.json()
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
