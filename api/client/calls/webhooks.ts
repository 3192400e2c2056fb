import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a webhook delivery as it appears in a list. */
export type DeliveryItem = Operations['getWebhooksDeliveries']['result']['deliveries'][number]
/** Describes a webhook delivery with its delivery attempts. */
export type Delivery = Operations['getWebhooksDeliveriesByDeliveryId']['result']

type ListQuery = NonNullable<Operations['getWebhooksDeliveries']['input']['query']>

/** Describes a registered URL that receives the events of the project. */
export type Webhook = Operations['getWebhooks']['result']['webhooks'][number]

/**
 * Manages webhooks and their deliveries.
 *
 * @example
 * const { secret } = await purser.webhooks.create({ url: 'https://agent.example.com/hooks', events: ['message.received'] })
 */
export function webhooks(http: Http) {
  /** Returns one page of webhook deliveries, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getWebhooksDeliveries', { query }, options)
  return {
    /** Registers a webhook URL. Only this response shows the webhook's secret. */
    create: (webhook: Operations['postWebhooks']['input']['body'], options?: CallOptions) =>
      http.call('postWebhooks', { body: webhook }, options),
    /** Returns the registered webhooks. */
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
    /**
     * Iterates over every webhook delivery, newest first. The iteration loads the pages of webhook deliveries one after
     * another.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.deliveries,
        query.pageToken,
      ),
    /** Counts the webhook deliveries of a project, and returns the fraction of failed deliveries. */
    stats: (
      query: NonNullable<Operations['getWebhooksDeliveriesStats']['input']['query']> = {},
      options?: CallOptions,
    ) => http.call('getWebhooksDeliveriesStats', { query }, options),
    get: (deliveryId: string, options?: CallOptions) =>
      http.call('getWebhooksDeliveriesByDeliveryId', { path: { deliveryId } }, options),
    /** Sends the event of a webhook delivery again. */
    replay: (deliveryId: string, options?: CallOptions) =>
      http.call('postWebhooksDeliveriesByDeliveryIdReplay', { path: { deliveryId } }, options),
  }
}
