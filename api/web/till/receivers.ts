/**
 * Lists the URLs that receive the events of a project. The receiving URLs belong to webhooks of the project and to
 * endpoints with a webhook.
 */
import { ask, at } from '../kit/ask.ts'
import { count } from '../kit/format.ts'
import { percent } from '../kit/percent.ts'
import type {
  DeliveryCounts,
  DeliveryStats,
  Endpoint,
  EventWebhook,
  Project,
} from '../kit/types.ts'

export type Receiver = { id: string; url: string }

/**
 * Sets the maximum number of webhook receivers that the filter offers. For other receivers, a user can search by URL.
 */
const SHOWN = '100'

export async function receiversOf(
  { projectId }: Project,
  signal: AbortSignal,
): Promise<Receiver[]> {
  const base = at`/projects/${projectId}/v0`
  const [{ webhooks }, { endpoints }] = await Promise.all([
    ask<{ webhooks: EventWebhook[] }>(`${base}/webhooks?limit=${SHOWN}`, { signal }),
    ask<{ endpoints: Endpoint[] }>(`${base}/sellers/endpoints?limit=${SHOWN}`, { signal }),
  ])
  return [
    ...webhooks.map(({ webhookId: id, url }) => ({ id, url })),
    ...endpoints.flatMap(({ endpointId: id, webhookUrl: url }) =>
      url === null ? [] : [{ id, url }],
    ),
  ]
}

/** Returns the query parameter that names a receiver of webhook events. */
export const receiverQuery = (id: string): Record<string, string> =>
  id.startsWith('se_') ? { endpointId: id } : { webhookId: id }

/** Sets the number of days for which the console computes the failure rate of a webhook receiver. */
const DAYS = 7

/** Returns the failure rate of each receiver over the last DAYS days as a short text. */
export async function failureRates(
  { projectId }: Project,
  signal: AbortSignal,
): Promise<(id: string) => string | null> {
  const after = new Date(Date.now() - DAYS * 24 * 60 * 60 * 1000).toISOString()
  const { byReceiver } = await ask<DeliveryStats>(
    `${at`/projects/${projectId}/v0/webhooks/deliveries/stats`}?${new URLSearchParams({ after })}`,
    { signal },
  )
  return (id) => {
    const found = byReceiver.find((one) => (one.endpointId ?? one.webhookId) === id)
    return found === undefined ? null : `${rateOf(found)} in ${DAYS} days`
  }
}

/** Formats a failure rate, for example `3 % of 120 failed`. */
export function rateOf({ delivered, failed }: DeliveryCounts): string {
  const ended = delivered + failed
  if (ended === 0) return 'none has ended'
  return `${percent(failed / ended)} of ${count(ended)} failed`
}
