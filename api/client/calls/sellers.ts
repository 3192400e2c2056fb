import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** An endpoint with its number of calls and its revenue. */
export type Endpoint = Operations['getSellersEndpointsByEndpointId']['result']

type ListQuery = NonNullable<Operations['getSellersEndpoints']['input']['query']>

/**
 * The endpoints of a seller.
 *
 * @example
 * await purser.sellers.put({ urlPattern: 'https://api.example.com/report', priceUsdc: '0.01' })
 */
export function sellers(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSellersEndpoints', { query }, options)
  return {
    list,
    /** Every endpoint, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.endpoints,
        query.pageToken,
      ),
    get: (endpointId: string, options?: CallOptions) =>
      http.call('getSellersEndpointsByEndpointId', { path: { endpointId } }, options),
    /** Registers an endpoint, or changes the one with that URL. The answer holds `webhookSecret` only if it is new. */
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
    /** Checks the URL again, and answers with the verdict. */
    verify: (endpointId: string, options?: CallOptions) =>
      http.call('postSellersEndpointsByEndpointIdVerify', { path: { endpointId } }, options),
    /** Asks the endpoint as a buyer does; `buy` pays it once, on the embedded devnet. */
    startTrial: (endpointId: string, buy: boolean, options?: CallOptions) =>
      http.call(
        'postSellersEndpointsByEndpointIdTrial',
        { path: { endpointId }, body: { buy } },
        options,
      ),
    /** The last trial. */
    trial: (endpointId: string, options?: CallOptions) =>
      http.call('getSellersEndpointsByEndpointIdTrial', { path: { endpointId } }, options),
    /** Replaces the webhook secret. Only this answer shows the new one. */
    rotateSecret: (endpointId: string, options?: CallOptions) =>
      http.call('postSellersEndpointsByEndpointIdRotateSecret', { path: { endpointId } }, options),
  }
}
