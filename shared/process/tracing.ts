import type { Span, SpanOptions, Tracer } from './span.ts'
import { traceparent, within } from './workContext.ts'

const NO_SPAN: Span = { rename() {}, set() {}, fail() {} }
let tracer: Tracer | null = null

/**
 * Starts tracing. Without a call of `startTracing`, the process does not load the libraries of OpenTelemetry, and a
 * trace span costs nothing.
 */
export async function startTracing(options: {
  endpoint: string
  service: string
}): Promise<{ stop(): Promise<void> }> {
  const { createTracer } = await import('./openTelemetry.ts')
  const started = createTracer(options)
  tracer = started
  return {
    async stop() {
      tracer = null
      await started.stop()
    },
  }
}

/**
 * Runs work in a trace span. If the work throws an error, the trace span ends as failed. The trace does not contain the
 * message of the error.
 */
export async function traced<Result>(
  name: string,
  options: SpanOptions,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  if (tracer === null) return work(NO_SPAN)
  const { parent = traceparent() } = options
  const span = tracer.open(name, { ...options, parent })
  try {
    return await within({ traceparent: span.traceparent }, () => work(span))
  } catch (error) {
    span.fail(typeOf(error))
    throw error
  } finally {
    span.end()
  }
}

/** Runs work that belongs to several traces, such as a batch. Each of these traces gets a trace span for the work. */
export async function tracedForAll<Result>(
  name: string,
  parents: readonly (string | null)[],
  options: Omit<SpanOptions, 'parent'>,
  work: () => Promise<Result>,
): Promise<Result> {
  const open = tracer
  if (open === null) return work()
  const spans = parents
    .filter((parent) => parent !== null)
    .map((parent) => open.open(name, { ...options, parent }))
  try {
    return await work()
  } catch (error) {
    for (const span of spans) span.fail(typeOf(error))
    throw error
  } finally {
    for (const span of spans) span.end()
  }
}

const typeOf = (error: unknown): string => (error instanceof Error ? error.name : 'Error')
