/** Holds facts of a span: names and numbers, and never mail, secrets or keys. */
type Attributes = Record<string, string | number | boolean>

export type SpanOptions = {
  kind: 'server' | 'client' | 'consumer'
  /**
   * Is the stored or received trace context to continue. Null begins a new trace. Without a value the context of this
   * work continues.
   */
  parent?: string | null
  attributes?: Attributes
}

/** Is an open span. */
export type Span = {
  rename(name: string): void
  set(attributes: Attributes): void
  /** Marks the span as failed. */
  fail(type: string): void
}

/** Is a span of the exporter, with its W3C trace context. */
type OpenSpan = Span & { traceparent: string; end(): void }

/** Opens spans, and sends the ended spans. */
export type Tracer = {
  open(name: string, options: SpanOptions & { parent: string | null }): OpenSpan
  /** Sends the spans that are left. */
  stop(): Promise<void>
}
