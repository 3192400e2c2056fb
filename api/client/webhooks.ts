import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A webhook delivery as lists show it. */
export type DeliveryItem = Operations['getWebhooksDeliveries']['result']['deliveries'][number]
/** A webhook delivery with its attempts. */
export type Delivery = Operations['getWebhooksDeliveriesByDeliveryId']['result']

type ListQuery = NonNullable<Operations['getWebhooksDeliveries']['input']['query']>

/** A URL that the project's events are sent to. */
export type Webhook = Operations['getWebhooks']['result']['webhooks'][number]

/** Where events are sent to, and what became of each. */
export function webhooks(http: Http) {
  /** One page of deliveries, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getWebhooksDeliveries', { query }, options)
  return {
    /** Registers a URL; the answer shows the secret, this once. */
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
    /** What is on its way to it is given up. */
    delete: (webhookId: string, options?: CallOptions) =>
      http.call('deleteWebhooksByWebhookId', { path: { webhookId } }, options),
    list,
    /** Every delivery, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.deliveries,
        query.pageToken,
      ),
    get: (deliveryId: string, options?: CallOptions) =>
      http.call('getWebhooksDeliveriesByDeliveryId', { path: { deliveryId } }, options),
    /** Sends an event again. */
    replay: (deliveryId: string, options?: CallOptions) =>
      http.call('postWebhooksDeliveriesByDeliveryIdReplay', { path: { deliveryId } }, options),
  }
}
