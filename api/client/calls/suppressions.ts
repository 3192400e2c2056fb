import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a suppressed address, to which the project sends no mail. */
export type Suppression = Operations['getSuppressions']['result']['suppressions'][number]

type ListQuery = Omit<NonNullable<Operations['getSuppressions']['input']['query']>, 'limit'> & {
  /** Sets the number of addresses in a page, from 1 to 100, and 50 by default. */
  limit?: number | undefined
}

/**
 * Manages the suppressed addresses of a project.
 *
 * @example
 * for await (const { address, reason } of purser.suppressions.all()) console.log(address, reason)
 */
export function suppressions(http: Http) {
  /** Returns one page of suppressed addresses, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getSuppressions', { query }, options)
  return {
    list,
    /**
     * Iterates over every suppressed address, newest first. The iteration loads each page of suppressed addresses only
     * when it reaches the page.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.suppressions,
        query.pageToken,
      ),
    /** Ends the suppression of an address, so that the project may send mail to the address again. */
    delete: (address: string, options?: CallOptions) =>
      http.call('deleteSuppressionsByAddress', { path: { address } }, options),
  }
}
