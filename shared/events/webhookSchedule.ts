/** Defines the retry schedule of webhook deliveries (docs/contract.md §7). */

/**
 * Lists the delays in seconds between the attempts of a webhook delivery. The first delay begins after the first
 * attempt has failed.
 */
const WEBHOOK_DELAYS_S = [1, 4, 16, 64, 300] as const

/**
 * Sets the maximum number of attempts of one webhook delivery: the first attempt, and one further attempt for each
 * delay.
 */
export const WEBHOOK_ATTEMPTS_MAX = WEBHOOK_DELAYS_S.length + 1

export type WebhookVerdict = 'delivered' | 'aborted' | 'retry'

/**
 * Returns the delay after a failed attempt of a webhook delivery.
 *
 * @param attempt is the number of the failed attempt, from 1 to {@link WEBHOOK_ATTEMPTS_MAX}.
 * @returns the seconds from the end of the failed attempt to the next attempt. Null means that the failed attempt was
 * the last attempt.
 * @throws RangeError if `attempt` is out of range.
 */
export function nextWebhookDelayS(attempt: number): number | null {
  if (!Number.isInteger(attempt) || attempt < 1 || attempt > WEBHOOK_ATTEMPTS_MAX) {
    throw new RangeError(`attempt must be 1 to ${WEBHOOK_ATTEMPTS_MAX}: ${attempt}`)
  }
  return WEBHOOK_DELAYS_S[attempt - 1] ?? null
}

/**
 * Decides by the receiver's HTTP response whether a webhook delivery has succeeded, has failed, or needs another
 * attempt.
 *
 * @param status is the HTTP status of the receiver's response. Null means that a timeout or a network error prevented
 * the response. The service never follows a redirect, so a redirect ends the delivery like a 4xx status. The statuses
 * 408 and 429 also end the delivery.
 */
export function webhookVerdict(status: number | null): WebhookVerdict {
  if (status === null) return 'retry'
  if (status >= 200 && status <= 299) return 'delivered'
  if (status >= 300 && status <= 499) return 'aborted'
  return 'retry'
}
