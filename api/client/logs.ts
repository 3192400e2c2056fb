import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** One thing that was done. */
export type LogEntry = Operations['getLogs']['result']['logs'][number]

type ListQuery = NonNullable<Operations['getLogs']['input']['query']>

/** Who did what in a project. */
export function logs(http: Http) {
  /** One page, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getLogs', { query }, options)
  return {
    list,
    /** Every entry, newest first; reads on as it is iterated. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.logs,
        query.pageToken,
      ),
  }
}
