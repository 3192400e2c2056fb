import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a seller's endpoint with its number of calls and its revenue. */
export type Endpoint = Operations['getSellersEndpointsByEndpointId']['result']

type ListQuery = NonNullable<Operations['getSellersEndpoints']['input']['query']>

/**
 * Manages the endpoints of a seller, which are resources with a price.
 *
 * @example
 * await purser.sellers.put({ urlPattern: 'https://api.example.com/report', priceUsdc: '0.01' })
 */
export function sellers(http: Http) {
  /** Returns one page of a seller's endpoints, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSellersEndpoints', { query }, options)
  return {
    list,
    /**
     * Iterates over every endpoint of a seller, newest first. The iteration loads the pages of endpoints one after
     * another.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.endpoints,
        query.pageToken,
      ),
    get: (endpointId: string, options?: CallOptions) =>
      http.call('getSellersEndpointsByEndpointId', { path: { endpointId } }, options),
    /**
     * Registers an endpoint (a resource with a price), or changes the endpoint with the same URL. Only the first
     * response for a new endpoint shows a generated `webhookSecret`. Therefore the client does not repeat a call with a
     * `webhookUrl` but without a `webhookSecret` after a lost response. After such an error, get a new secret by
     * `rotateSecret`.
     */
    put: (endpoint: Operations['putSellersEndpoints']['input']['body'], options?: CallOptions) =>
      http.call('putSellersEndpoints', { body: endpoint }, options),
    update: (
      endpointId: string,
      change: Operations['patchSellersEndpointsByEndpointId']['input']['body'],
      options?: CallOptions,
    ) =>
      http.call(
        'patchSellersEndpointsByEndpointId',
        { path: { endpointId }, body: change },
        options,
      ),
    delete: (endpointId: string, options?: CallOptions) =>
      http.call('deleteSellersEndpointsByEndpointId', { path: { endpointId } }, options),
    /** Checks the URL of an endpoint again, and returns the result of the check. */
    verify: (endpointId: string, options?: CallOptions) =>
      http.call('postSellersEndpointsByEndpointIdVerify', { path: { endpointId } }, options),
    /**
     * Starts a trial of an endpoint, in which the service sends requests to the endpoint like a buyer. With `buy`, the
     * trial also makes one payment, on the embedded devnet.
     */
    startTrial: (endpointId: string, buy: boolean, options?: CallOptions) =>
      http.call(
        'postSellersEndpointsByEndpointIdTrial',
        { path: { endpointId }, body: { buy } },
        options,
      ),
    /** Returns the result of the last trial of an endpoint, in which the service sent requests like a buyer. */
    trial: (endpointId: string, options?: CallOptions) =>
      http.call('getSellersEndpointsByEndpointIdTrial', { path: { endpointId } }, options),
    /** Replaces the webhook secret of an endpoint. Only this response shows the new secret. */
    rotateSecret: (endpointId: string, options?: CallOptions) =>
      http.call('postSellersEndpointsByEndpointIdRotateSecret', { path: { endpointId } }, options),
  }
}
