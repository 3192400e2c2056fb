import { AsyncLocalStorage } from 'node:async_hooks'

/** Identifies what the running code works on. Log lines name it. */
export type WorkContext = {
  requestId?: string
  jobId?: string
  /** Identifies the running span (W3C Trace Context §3.2). Without a value nothing is traced. */
  traceparent?: string
}

const storage = new AsyncLocalStorage<WorkContext>()

/** Runs work with additional facts. The facts of the outer work remain. */
export const within = <Result>(more: WorkContext, work: () => Result): Result =>
  storage.run({ ...storage.getStore(), ...more }, work)

/** Runs work for several callers, without the facts of any of them. */
export const withinNone = <Result>(work: () => Result): Result => storage.run({}, work)

/** Returns the trace context of this work, to store with a row or to send with a request; null: nothing is traced. */
export const traceparent = (): string | null => storage.getStore()?.traceparent ?? null

/** Returns the fields of each log line of this work. */
export function workFields(): { requestId?: string; jobId?: string; traceId?: string } {
  const { traceparent: trace, ...ids } = storage.getStore() ?? {}
  return trace === undefined ? ids : { ...ids, traceId: trace.slice(3, 35) }
}
