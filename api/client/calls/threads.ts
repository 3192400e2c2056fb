import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a conversation as it appears in a list. */
export type ThreadItem = Operations['getThreads']['result']['threads'][number]
/** Describes a conversation with its messages. */
export type Thread = Operations['getThreadsByThreadId']['result']

type ListQuery = NonNullable<Operations['getThreads']['input']['query']>

/**
 * Reads and changes the conversations of an inbox.
 *
 * @example
 * for await (const { threadId, subject } of purser.threads.all({ limit: 20 })) console.log(threadId, subject)
 */
export function threads(http: Http) {
  /** Returns one page of threads. The most recently updated thread comes first. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getThreads', { query }, options)
  return {
    list,
    /**
     * Iterates over every thread. The most recently updated thread comes first. The iteration loads the pages of
     * threads one after another.
     */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.threads,
        query.pageToken,
      ),
    /** Returns a thread with its newest messages, from old to new. */
    get: (threadId: string, query: { limit?: number | undefined } = {}, options?: CallOptions) =>
      http.call('getThreadsByThreadId', { path: { threadId }, query }, options),
    /** Changes the labels of every message of a thread. */
    updateLabels: (
      threadId: string,
      change: Operations['patchThreadsByThreadId']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchThreadsByThreadId', { path: { threadId }, body: change }, options),
    /** Deletes a thread with all its messages permanently. */
    delete: (threadId: string, options?: CallOptions) =>
      http.call('deleteThreadsByThreadId', { path: { threadId } }, options),
  }
}
