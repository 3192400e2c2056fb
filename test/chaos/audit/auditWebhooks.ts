import type { Delivered, Evidence } from './evidence.ts'
import type { Ledger } from './ledger.ts'

/**
 * Holds the paths of the test receiver: for the seller's resource, another seller's resource, the endpoint's webhook,
 * and the project's webhook.
 */
export const PATHS = {
  resource: '/report',
  paid: '/paid',
  payments: '/payments',
  events: '/events',
} as const

/**
 * Checks that each webhook is signed, and that repeats of a delivery have the same Idempotency-Key and body. Also
 * checks that each payment and each event has only one Idempotency-Key.
 */
export function auditWebhooks({ listeners }: Ledger, evidence: Evidence): string[] {
  const { delivered, payments } = evidence
  const settled = payments.filter(({ status }) => status === 'settled').map(({ id }) => id)
  const heard = listeners[0]?.heard ?? []
  return [
    ...auditRequests(delivered),
    ...auditArrival(
      delivered.filter(({ path }) => path === PATHS.payments),
      settled.map((id) => `payment.received ${id}`),
    ),
    ...auditArrival(
      delivered.filter(({ path }) => path === PATHS.events),
      heard.map(({ type, subjectId }) => `${type} ${subjectId}`),
    ),
  ]
}

function auditRequests(delivered: readonly Delivered[]): string[] {
  const findings = delivered
    .filter(({ genuine }) => !genuine)
    .map(({ idempotencyKey }) => `webhooks: ${idempotencyKey} came with a wrong signature`)
  for (const [key, requests] of Map.groupBy(delivered, ({ idempotencyKey }) => idempotencyKey)) {
    const bodies = new Set(requests.map(({ bodyHash }) => bodyHash))
    if (bodies.size > 1) findings.push(`webhooks: ${key} came with ${bodies.size} bodies`)
  }
  return findings
}

/**
 * Checks that the webhook of each expected event arrived with one Idempotency-Key and got a response with status 200.
 * Also checks that no unexpected event arrived.
 */
function auditArrival(delivered: readonly Delivered[], expected: readonly string[]): string[] {
  const came = Map.groupBy(delivered, ({ event, subjectId }) => `${event} ${subjectId}`)
  const findings: string[] = []
  for (const name of expected) {
    const requests = came.get(name) ?? []
    const keys = new Set(requests.map(({ idempotencyKey }) => idempotencyKey))
    if (keys.size === 0) findings.push(`webhooks: ${name} never came`)
    else if (keys.size > 1) findings.push(`webhooks: ${name} came under ${keys.size} keys`)
    else if (!requests.some(({ status }) => status === 200)) {
      findings.push(`webhooks: ${name} was never taken`)
    }
  }
  const known = new Set(expected)
  for (const name of came.keys()) {
    if (!known.has(name)) findings.push(`webhooks: ${name} came and never happened`)
  }
  return findings
}
