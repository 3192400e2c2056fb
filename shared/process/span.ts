/** Holds names and numbers that describe the work of a trace span, but never mail, secrets or keys. */
type Attributes = Record<string, string | number | boolean>

export type SpanOptions = {
  kind: 'server' | 'client' | 'consumer'
  /**
   * Holds the W3C trace context (stored or received) that the new trace span continues. Null means that the span begins
   * a new trace. Undefined means that the span belongs to the trace of the running work.
   */
  parent?: string | null
  attributes?: Attributes
}

/** Describes a trace span that has not ended. */
export type Span = {
  rename(name: string): void
  set(attributes: Attributes): void
  /** Marks the trace span as failed. */
  fail(type: string): void
}

/** Describes a trace span of the exporter, with its W3C trace context. */
type OpenSpan = Span & { traceparent: string; end(): void }

/** Opens trace spans, and exports the ended spans. */
export type Tracer = {
  open(name: string, options: SpanOptions & { parent: string | null }): OpenSpan
  /** Ends the tracer, and exports the remaining trace spans. */
  stop(): Promise<void>
}
