import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** An address that mail does not go to any more. */
export type Suppression = Operations['getSuppressions']['result']['suppressions'][number]

type ListQuery = Omit<NonNullable<Operations['getSuppressions']['input']['query']>, 'limit'> & {
  /** 1–100; 50 when left out. */
  limit?: number | undefined
}

/** Addresses that mail does not go to any more, because it came back. */
export function suppressions(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSuppressions', { query }, options)
  return {
    list,
    /** Every suppressed address, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.suppressions,
        query.pageToken,
      ),
    /** Lets mail go to an address again. */
    delete: (address: string, options?: CallOptions) =>
      http.call('deleteSuppressionsByAddress', { path: { address } }, options),
  }
}
