/** Facts of a span: names and numbers, never mail, secrets or keys. */
type Attributes = Record<string, string | number | boolean>

export type SpanOptions = {
  kind: 'server' | 'client' | 'consumer'
  /** The trace context to continue: stored or received. Null: a new trace. Absent: that of this work. */
  parent?: string | null
  attributes?: Attributes
}

/** An open span. */
export type Span = {
  rename(name: string): void
  set(attributes: Attributes): void
  /** Marks the span as failed. */
  fail(type: string): void
}

/** A span of the exporter, with its W3C trace context. */
type OpenSpan = Span & { traceparent: string; end(): void }

/** Opens spans, and sends the ended ones. */
export type Tracer = {
  open(name: string, options: SpanOptions & { parent: string | null }): OpenSpan
  /** Sends what is left. */
  stop(): Promise<void>
}
