import { AsyncLocalStorage } from 'node:async_hooks'

/** What this code works on. Log lines name it. */
export type WorkContext = {
  requestId?: string
  jobId?: string
  /** W3C Trace Context §3.2: the span that runs; absent: nothing is traced. */
  traceparent?: string
}

const storage = new AsyncLocalStorage<WorkContext>()

/** Runs work under more facts; those of the outer work stay. */
export const within = <Result>(more: WorkContext, work: () => Result): Result =>
  storage.run({ ...storage.getStore(), ...more }, work)

/** Runs work that belongs to several callers: it has the facts of none. */
export const withinNone = <Result>(work: () => Result): Result => storage.run({}, work)

/** The trace context of this work, to be stored with a row or sent with a request; null: nothing is traced. */
export const traceparent = (): string | null => storage.getStore()?.traceparent ?? null

/** The fields of each log line of this work. */
export function workFields(): { requestId?: string; jobId?: string; traceId?: string } {
  const { traceparent: trace, ...ids } = storage.getStore() ?? {}
  return trace === undefined ? ids : { ...ids, traceId: trace.slice(3, 35) }
}
