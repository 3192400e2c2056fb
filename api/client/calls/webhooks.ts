import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A webhook delivery as lists show it. */
export type DeliveryItem = Operations['getWebhooksDeliveries']['result']['deliveries'][number]
/** A webhook delivery with its attempts. */
export type Delivery = Operations['getWebhooksDeliveriesByDeliveryId']['result']

type ListQuery = NonNullable<Operations['getWebhooksDeliveries']['input']['query']>

/** A registered URL that receives the project's events. */
export type Webhook = Operations['getWebhooks']['result']['webhooks'][number]

/**
 * Webhooks and their deliveries.
 *
 * @example
 * const { secret } = await purser.webhooks.create({ url: 'https://agent.example.com/hooks', events: ['message.received'] })
 */
export function webhooks(http: Http) {
  /** One page of deliveries, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getWebhooksDeliveries', { query }, options)
  return {
    /** Registers a URL. Only this answer shows the secret. */
    create: (webhook: Operations['postWebhooks']['input']['body'], options?: CallOptions) =>
      http.call('postWebhooks', { body: webhook }, options),
    /** The registered URLs. */
    registered: (
      query: NonNullable<Operations['getWebhooks']['input']['query']> = {},
      options?: CallOptions,
    ) => http.call('getWebhooks', { query }, options),
    update: (
      webhookId: string,
      change: Operations['patchWebhooksByWebhookId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchWebhooksByWebhookId', { path: { webhookId }, body: change }, options),
    rotateSecret: (webhookId: string, options?: CallOptions) =>
      http.call('postWebhooksByWebhookIdRotateSecret', { path: { webhookId } }, options),
    /** Deletes a webhook and aborts its pending deliveries. */
    delete: (webhookId: string, options?: CallOptions) =>
      http.call('deleteWebhooksByWebhookId', { path: { webhookId } }, options),
    list,
    /** Every delivery, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.deliveries,
        query.pageToken,
      ),
    /** Counts deliveries, with the share of those that failed. */
    stats: (
      query: NonNullable<Operations['getWebhooksDeliveriesStats']['input']['query']> = {},
      options?: CallOptions,
    ) => http.call('getWebhooksDeliveriesStats', { query }, options),
    get: (deliveryId: string, options?: CallOptions) =>
      http.call('getWebhooksDeliveriesByDeliveryId', { path: { deliveryId } }, options),
    /** Sends an event again. */
    replay: (deliveryId: string, options?: CallOptions) =>
      http.call('postWebhooksDeliveriesByDeliveryIdReplay', { path: { deliveryId } }, options),
  }
}
