import { AsyncLocalStorage } from 'node:async_hooks'

/**
 * Identifies the HTTP request or the job of the running code. Each log line of the running code names its HTTP request
 * and its job.
 */
export type WorkContext = {
  requestId?: string
  jobId?: string
  /**
   * Identifies the running trace span (W3C Trace Context §3.2). Undefined means that the service does not trace the
   * running code.
   */
  traceparent?: string
}

const storage = new AsyncLocalStorage<WorkContext>()

/**
 * Runs work, and adds fields to the log lines of the work. The log lines also keep the fields of the surrounding work.
 */
export const within = <Result>(more: WorkContext, work: () => Result): Result =>
  storage.run({ ...storage.getStore(), ...more }, work)

/** Runs work that serves several callers. The log lines of such work name no caller's HTTP request or job. */
export const withinNone = <Result>(work: () => Result): Result => storage.run({}, work)

/**
 * Returns the trace context of the running work, so that the caller can store it in a database row or send it with a
 * request. Null means that the service does not trace the running work.
 */
export const traceparent = (): string | null => storage.getStore()?.traceparent ?? null

/** Returns the fields of each log line of the running work. */
export function workFields(): { requestId?: string; jobId?: string; traceId?: string } {
  const { traceparent: trace, ...ids } = storage.getStore() ?? {}
  return trace === undefined ? ids : { ...ids, traceId: trace.slice(3, 35) }
}
