import type { Tally } from './audit/tally.ts'
import type { Pulses } from './pulse.ts'

type Answer = { status: number; body: any }

type Call = {
  /** Names the kind of operation under which the call is counted in the report of the chaos run. */
  kind: string
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  path: string
  body?: unknown
  idempotencyKey?: string
  timeoutMs?: number
}

/** Calls the API once. Returns null if no response comes, or if its status is 5xx or 429. */
export type Caller = (call: Call) => Promise<Answer | null>

const TIMEOUT_MS = 8_000

/** Returns a function that calls the API with one API key and counts how each call ended. */
export function createCaller(
  { url, key }: { url: string; key: string },
  { tally, pulses }: { tally: Tally; pulses: Pulses },
): Caller {
  return async (call) => {
    const answer = await ask(url, key, call)
    if (answer !== null) pulses.beat('api')
    const end = answer === null ? 'lost' : answer.status < 300 ? 'accepted' : 'refused'
    tally.count(call.kind, end)
    return answer
  }
}

async function ask(url: string, key: string, call: Call): Promise<Answer | null> {
  const { method, path, body, idempotencyKey, timeoutMs = TIMEOUT_MS } = call
  try {
    const response = await fetch(url + path, {
      method,
      // Each call opens a new connection, because fetch may by itself repeat a call on a reused connection.
      keepalive: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await response.text()
    if (response.status >= 500 || response.status === 429) return null
    return { status: response.status, body: text === '' ? null : JSON.parse(text) }
  } catch {
    return null
  }
}
