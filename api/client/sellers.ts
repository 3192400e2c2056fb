import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A paid endpoint, with what it earned. */
export type Endpoint = Operations['getSellersEndpointsByEndpointId']['result']

type ListQuery = NonNullable<Operations['getSellersEndpoints']['input']['query']>

/** What a seller charges for. */
export function sellers(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSellersEndpoints', { query }, options)
  return {
    list,
    /** Every endpoint, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.endpoints,
        query.pageToken,
      ),
    get: (endpointId: string, options?: CallOptions) =>
      http.call('getSellersEndpointsByEndpointId', { path: { endpointId } }, options),
    /** Registers an endpoint, or changes the one of that URL. `webhookSecret` is in the answer when it is new, only then. */
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
    /** Replaces the webhook secret; the new one is in the answer, this once. */
    rotateSecret: (endpointId: string, options?: CallOptions) =>
      http.call('postSellersEndpointsByEndpointIdRotateSecret', { path: { endpointId } }, options),
  }
}
