import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes one entry of the audit log. */
export type LogEntry = Operations['getLogs']['result']['logs'][number]

/** Counts the entries of the audit log, in total and by part of the service. */
export type LogStats = Operations['getLogsStats']['result']

type ListQuery = NonNullable<Operations['getLogs']['input']['query']>

/**
 * Reads the audit log of a project.
 *
 * @example
 * for await (const { createdAt, action } of purser.logs.all({ limit: 100 })) console.log(createdAt, action)
 */
export function logs(http: Http) {
  /** Returns one page of audit log entries, newest first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getLogs', { query }, options)
  return {
    list,
    /**
     * Iterates over every audit log entry, newest first. The iteration loads the pages of audit log entries one after
     * another.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.logs,
        query.pageToken,
      ),
    stats: (
      query: NonNullable<Operations['getLogsStats']['input']['query']> = {},
      options?: CallOptions,
    ): Promise<LogStats> => http.call('getLogsStats', { query }, options),
  }
}
