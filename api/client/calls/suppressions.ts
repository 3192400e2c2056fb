import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A suppressed address: no mail is sent to it. */
export type Suppression = Operations['getSuppressions']['result']['suppressions'][number]

type ListQuery = Omit<NonNullable<Operations['getSuppressions']['input']['query']>, 'limit'> & {
  /** 1–100; default 50. */
  limit?: number | undefined
}

/**
 * The suppressed addresses of a project.
 *
 * @example
 * for await (const { address, reason } of purser.suppressions.all()) console.log(address, reason)
 */
export function suppressions(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSuppressions', { query }, options)
  return {
    list,
    /** Every suppressed address, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.suppressions,
        query.pageToken,
      ),
    /** Ends the suppression of an address. */
    delete: (address: string, options?: CallOptions) =>
      http.call('deleteSuppressionsByAddress', { path: { address } }, options),
  }
}
