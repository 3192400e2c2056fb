import {
  isSpanContextValid,
  ROOT_CONTEXT,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import type { Tracer } from './span.ts'

/**
 * Sets the interval in milliseconds at which the exporter sends the trace spans that have ended since its last request.
 */
const EXPORT_DELAY_MS = 500

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, consumer: SpanKind.CONSUMER }

/**
 * Exports trace spans over OTLP/HTTP (JSON). The exporter drops trace spans that the collector does not accept, so that
 * tracing never delays work.
 * @param options.endpoint is the collector's base URL. The exporter sends the trace spans to the path `/v1/traces` of
 * the base URL.
 */
export function createTracer({ endpoint, service }: { endpoint: string; service: string }): Tracer {
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': `purser-${service}` }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url }),
        scheduledDelayMillis: EXPORT_DELAY_MS,
      }),
    ],
  })
  const tracer = provider.getTracer('purser')
  return {
    open(name, { kind, parent, attributes = {} }) {
      const before = parent === null ? null : readTraceparent(parent)
      const context = before === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, before)
      const span = tracer.startSpan(name, { kind: KINDS[kind], attributes }, context)
      return {
        traceparent: writeTraceparent(span.spanContext()),
        rename: (to) => void span.updateName(to),
        set: (more) => void span.setAttributes(more),
        fail(type) {
          span.setAttribute('error.type', type)
          span.setStatus({ code: SpanStatusCode.ERROR })
        },
        end: () => span.end(),
      }
    },
    async stop() {
      await provider.shutdown().catch(() => {})
    },
  }
}

const writeTraceparent = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`

/**
 * Reads a `traceparent` header of version 00, or the same fields of a later version (W3C Trace Context §3.2.2).
 * @returns null if the text is no valid `traceparent` header.
 */
function readTraceparent(text: string): SpanContext | null {
  const [, traceId = '', spanId = '', flags = ''] =
    /^(?!ff)[\da-f]{2}-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(?:-.{0,200})?$/.exec(text) ?? []
  const context = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  }
  return isSpanContextValid(context) ? context : null
}
