import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Identifies the HTTP request or the job that the running code belongs to. Each log line of the running code names its
 * HTTP request and its job.
 */
export type WorkContext = {
  requestId?: string
  jobId?: string
  /**
   * Identifies the running trace span (W3C Trace Context §3.2). Undefined means that the running code is not traced.
   */
  traceparent?: string
}

const storage = new AsyncLocalStorage<WorkContext>()

/**
 * Runs work, and adds facts to the log lines of the work. Facts that an outer piece of work has added to the log lines
 * stay in these lines.
 */
export const within = <Result>(more: WorkContext, work: () => Result): Result =>
  storage.run({ ...storage.getStore(), ...more }, work)

/**
 * Runs work that serves several callers. If work serves several callers, its log lines name no caller's request or job.
 */
export const withinNone = <Result>(work: () => Result): Result => storage.run({}, work)

/**
 * Returns the trace context of the running work, to store with a row or to send with a request. Null means that the
 * running work is not traced.
 */
export const traceparent = (): string | null => storage.getStore()?.traceparent ?? null

/** Returns the fields that each log line of the running work has. */
export function workFields(): { requestId?: string; jobId?: string; traceId?: string } {
  const { traceparent: trace, ...ids } = storage.getStore() ?? {}
  return trace === undefined ? ids : { ...ids, traceId: trace.slice(3, 35) }
}
