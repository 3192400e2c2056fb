/** A paywall for MCP tools (x402 transport for MCP). */
import { createPaywall, type PaywallOptions, UNAVAILABLE } from './paywall.ts'

/** The used part of a tool's result. */
type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

/** The used part of the last argument of a tool's callback. */
type ToolExtra = { _meta?: Record<string, unknown> | undefined }

/**
 * Puts a price on the callback of an MCP tool. The payer sends its payment in `_meta["x402/payment"]` (or
 * `_meta["x-payment"]`), as an object or as base64. The result holds the settlement in `_meta["x402/payment-response"]`.
 * A paid tool should have no `outputSchema`: clients would check the challenge against it.
 *
 * @param options `resource` is the registered URL of the tool.
 *
 * @example
 * const paid = requirePayment({ purser, amount: '0.01', resource: 'https://a.example/mcp/weather' }, weather)
 * server.registerTool('weather', { description: 'The weather, for 0.01 USDC' }, paid)
 */
export function requirePayment<Args extends unknown[], Result extends object>(
  options: PaywallOptions & { resource: string },
  callback: (...args: Args) => Result | Promise<Result>,
): (...args: Args) => Promise<Result | ToolResult> {
  const judge = createPaywall(options)
  return async (...args) => {
    const { _meta: meta = {} } = (args.at(-1) ?? {}) as ToolExtra
    const payment = readPayment(meta['x402/payment'] ?? meta['x-payment'])
    const verdict = await judge({ payment, resource: options.resource })
    if (verdict.kind === 'required') return refusal(verdict.challenge)
    if (verdict.kind === 'unavailable') return refusal(UNAVAILABLE)
    const result: Result & ToolExtra = await callback(...args)
    const settlement: unknown = JSON.parse(atob(verdict.grant.paymentResponse))
    return { ...result, _meta: { ...result._meta, 'x402/payment-response': settlement } }
  }
}

const readPayment = (value: unknown): string | object | null =>
  typeof value === 'string' || (typeof value === 'object' && value !== null) ? value : null

const refusal = (body: Record<string, unknown>): ToolResult => ({
  isError: true,
  structuredContent: { ...body },
  content: [{ type: 'text', text: JSON.stringify(body) }],
})
