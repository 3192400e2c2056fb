import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A webhook delivery as lists show it. */
export type DeliveryItem = Operations['getWebhooksDeliveries']['result']['deliveries'][number]
/** A webhook delivery with its attempts. */
export type Delivery = Operations['getWebhooksDeliveriesByDeliveryId']['result']

type ListQuery = NonNullable<Operations['getWebhooksDeliveries']['input']['query']>

/** What became of the events sent to a seller. */
export function webhooks(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getWebhooksDeliveries', { query }, options)
  return {
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
