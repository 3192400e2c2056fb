import { nextWebhookDelayS, webhookVerdict } from '../../shared/events/webhookSchedule.ts'
import { signWebhook } from '../../shared/events/webhookSignature.ts'
import { traced } from '../../shared/process/tracing.ts'
import type { AttemptResult } from '../../sql/events/attempts.ts'
import { abortDelivery, type DueDelivery, postponeAttempt } from '../../sql/events/deliveries.ts'
import { openWebhookSecret, type StoredSecret } from '../../sql/events/webhookSecrets.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import {
  type GuardedResponse,
  guardedRequest,
  type KeptConnections,
  keepConnections,
  type OutboundPolicy,
} from '../http/guardedRequest.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { createDeliveryBatchers, type DeliveryBatchers } from './deliveryBatchers.ts'

type DeliverOptions = {
  /** Decrypts the secrets with which the service signs webhook requests. */
  keyring: KeyringSource
  policy: OutboundPolicy
}

type Sender = PoolContext &
  DeliverOptions & { batchers: DeliveryBatchers; connections: KeptConnections }

/**
 * Limits the time of a whole webhook delivery attempt, from name resolution to the end of the HTTP response
 * (docs/contract.md §7).
 */
const ATTEMPT_TIMEOUT_MS = 10_000
/** Limits how many bytes of an HTTP response the delivery log stores. */
const LOGGED_BYTES = 1024

/**
 * Makes one attempt to deliver an event to a webhook, and records the outcome of the attempt. The transaction that
 * records the outcome also queues the next attempt. If the service crashes before this transaction is committed, the
 * attempt is repeated with the same idempotency key. After a later crash, the attempt is not repeated.
 */
export const createDeliverWebhook = (
  context: PoolContext,
  options: DeliverOptions,
): Task<'deliver_webhook'> => {
  const { pool, lanes } = context
  const batchers = createDeliveryBatchers(pool)
  const sender: Sender = { ...context, ...options, batchers, connections: keepConnections() }
  return async ({ deliveryId, attempt = 1 }) => {
    const read = () => patiently(() => sender.batchers.due.submit(deliveryId))
    const isNext = (found: DueDelivery | null) => found !== null && found.attempt === attempt - 1
    let delivery = await read()
    if (delivery === null || !isNext(delivery)) return
    const turn = await lanes.enter(delivery.ownerId ?? deliveryId, delivery.projectId)
    if (!turn.granted) {
      const next = { deliveryId, attempt, inMs: turn.returnInMs }
      return patiently(() => postponeAttempt(pool, next))
    }
    try {
      if (turn.waited) delivery = await read()
      const due = delivery
      if (due === null || !isNext(due)) return
      const attributes = { 'purser.delivery.event': due.event, 'purser.delivery.attempt': attempt }
      await traced(
        'deliver webhook',
        { kind: 'consumer', parent: due.traceparent, attributes },
        () => attemptDelivery(sender, due, turn.leave),
      )
    } finally {
      turn.leave()
    }
  }
}

async function attemptDelivery(
  sender: Sender,
  delivery: DueDelivery,
  answered: () => void,
): Promise<void> {
  const { secret } = delivery
  if (secret === null) {
    const reason = 'the endpoint no longer has a webhook'
    return patiently(() => abortDelivery(sender.pool, delivery.id, reason))
  }
  const answer = await post(sender, delivery, await signingSecret(sender, delivery, secret))
  const endedMs = performance.now()
  answered()
  const outcome = judge(answer, delivery)
  const result: AttemptResult = {
    endedMs,
    ...outcome,
    deliveryId: delivery.id,
    attempt: delivery.attempt + 1,
    ms: answer.ms,
    statusCode: answer.ok ? answer.status : null,
    error: answer.ok ? null : answer.detail,
    responsePrefix: answer.ok ? loggedPrefix(answer.bodyPrefix) : null,
  }
  await sender.outcomes.record(() => sender.batchers.attempts.submit(result))
}

async function signingSecret(
  { keyring, pool }: Sender,
  { projectId, ownerId }: DueDelivery,
  secret: StoredSecret,
): Promise<string> {
  return openWebhookSecret(await keyring(pool), { projectId, id: ownerId ?? '', secret })
}

function post(sender: Sender, delivery: DueDelivery, secret: string): Promise<GuardedResponse> {
  const { body } = delivery
  return guardedRequest({
    ...sender.policy,
    url: delivery.url,
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'X-Service-Event': delivery.event,
      'X-Service-Idempotency-Key': delivery.idempotencyKey,
      'X-Service-Signature': signWebhook({ secret, body }),
      'X-Service-Delivery-Attempt': String(delivery.attempt + 1),
    },
    body,
    timeoutMs: ATTEMPT_TIMEOUT_MS,
    kept: { by: sender.connections, owner: delivery.ownerId ?? delivery.id },
  })
}

function judge(
  answer: GuardedResponse,
  delivery: DueDelivery,
): Pick<AttemptResult, 'status' | 'retryInS'> {
  // A forbidden network address stays forbidden, so a retry of the webhook delivery is useless. A retry would only give
  // an attacker more information.
  if (!answer.ok && answer.kind === 'blocked') return { status: 'aborted', retryInS: null }
  const verdict = webhookVerdict(answer.ok ? answer.status : null)
  if (verdict !== 'retry') return { status: verdict, retryInS: null }
  const retryInS = nextWebhookDelayS(delivery.attempt + 1 - delivery.attemptsBefore)
  return { status: retryInS === null ? 'exhausted' : 'pending', retryInS }
}

/**
 * Shortens the text of an HTTP response for the delivery log. Removes U+0000, because PostgreSQL cannot store this
 * character. The function never cuts a character in half.
 */
function loggedPrefix(text: string): string {
  const bytes = Buffer.from(text.replaceAll('\0', '')).subarray(0, LOGGED_BYTES)
  return new TextDecoder().decode(bytes, { stream: true })
}
