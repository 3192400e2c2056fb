/** Provides a paywall for MCP tools (x402 transport for MCP). */
import { ANSWER_MAX_BYTES } from './paidAnswers.ts'
import { credentialsIn } from './paidRequest.ts'
import { createPaywall, type PaywallOptions, type Refused } from './paywall.ts'

/** Describes the fields of a tool's result that the paywall uses. */
type ToolResult = {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: boolean
  _meta?: Record<string, unknown>
}

type Meta = Record<string, unknown> | undefined
type AuthInfo = { token?: string } | undefined

/** Describes the fields of the last argument of a tool's callback that the paywall uses. */
type ToolExtra = {
  // Version 1 of the MCP SDK passes the following three fields to a tool's callback.
  _meta?: Meta
  authInfo?: AuthInfo
  requestInfo?: { headers?: Record<string, unknown> } | undefined
  // Version 2 of the MCP SDK passes the following two fields to a tool's callback.
  mcpReq?: { _meta?: Meta } | undefined
  http?: { req?: Request; authInfo?: AuthInfo } | undefined
}

/**
 * Lists the keys of `_meta` under which wallets send a payment. The x402 transport for MCP specifies the key
 * `x402/payment`. Older MCP hosts use the other keys of `_meta`.
 */
const PAYMENT_KEYS = ['x402/payment', 'x402.payment', 'x-payment']

export type McpPaywallOptions = Omit<PaywallOptions, 'versions'> & {
  /**
   * Holds the URL under which the seller registered the tool. Each tool needs a different URL, because the paywall
   * finds a stored response by this URL and the tool's arguments.
   */
  resource: string
  /**
   * Sets the x402 version of the challenge, 2 by default. A tool result can hold a challenge of only one version. The
   * paywall accepts a payment of either version.
   */
  x402Version?: 1 | 2
}

/**
 * Puts a price on the callback of an MCP tool. The payer sends its payment in `_meta["x402/payment"]` (or
 * `x402.payment`, `x-payment`), as an object or as base64. The result of the MCP tool holds the settlement in
 * `_meta["x402/payment-response"]`. A paid MCP tool should have no `outputSchema`, because clients would check the
 * payment challenge against this schema.
 *
 * @example
 * const paid = requirePayment({ purser, amount: '0.01', resource: 'https://a.example/mcp/weather' }, weather)
 * server.registerTool('weather', { description: 'The weather, for 0.01 USDC' }, paid)
 */
export function requirePayment<Args extends unknown[], Result extends object>(
  options: McpPaywallOptions,
  callback: (...args: Args) => Result | Promise<Result>,
): (...args: Args) => Promise<Result | ToolResult> {
  const judge = createPaywall<Result>(options)
  return async (...args) => {
    const extra = (args.at(-1) ?? {}) as ToolExtra
    const meta = extra.mcpReq?._meta ?? extra._meta ?? {}
    const payment = PAYMENT_KEYS.map((key) => readPayment(meta[key])).find((one) => one !== null)
    const verdict = await judge({
      payment: payment ?? null,
      resource: options.resource,
      asked: ['MCP', JSON.stringify(args.slice(0, -1)), credentialsOf(extra)],
    })
    if (verdict.kind === 'refused') return refusal(verdict, options.x402Version ?? 2)
    if (verdict.kind === 'answered') return verdict.answer
    const { grant, sale } = verdict
    try {
      const result: Result & Partial<ToolResult> = await callback(...args)
      const settlement = decode(grant.paymentResponse)
      const answer = { ...result, _meta: { ...result._meta, 'x402/payment-response': settlement } }
      const bytes = JSON.stringify(answer).length
      if (result.isError) sale.unsold()
      else sale.sold(bytes > ANSWER_MAX_BYTES ? null : { answer, bytes })
      return answer
    } catch (error) {
      sale.unsold()
      throw error
    }
  }
}

/**
 * Lists the credentials of the caller. Two calls count as equal only if their credentials are equal. Therefore an
 * attacker who copied a payment cannot get the response that the seller made for another person.
 */
function credentialsOf({ authInfo, requestInfo, http }: ToolExtra): unknown[] {
  const sent = http?.req === undefined ? requestInfo?.headers : Object.fromEntries(http.req.headers)
  const header = (name: string): unknown => sent?.[name]
  const token = (http?.authInfo ?? authInfo)?.token
  return [
    ...[token, header('authorization'), header('cookie')].map((one) => one ?? null),
    ...credentialsIn(Object.keys(sent ?? {}), header),
  ]
}

const readPayment = (value: unknown): string | object | null =>
  typeof value === 'string' || (typeof value === 'object' && value !== null) ? value : null

/** Decodes a payment header, which holds JSON in UTF-8. */
const decode = (header: string): Record<string, unknown> =>
  JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(header), (byte) => byte.charCodeAt(0))))

function refusal({ body, headers }: Refused, x402Version: 1 | 2): ToolResult {
  const required = headers['PAYMENT-REQUIRED']
  const shown = required === undefined || x402Version === 1 ? body : decode(required)
  const settlement = headers['PAYMENT-RESPONSE'] ?? headers['X-PAYMENT-RESPONSE']
  return {
    isError: true,
    structuredContent: shown,
    content: [{ type: 'text', text: JSON.stringify(shown) }],
    _meta: {
      // The result repeats the challenge in `x402/error`, because the MCP hosts of Cloudflare's agents read it there.
      ...(shown === body ? {} : { 'x402/error': shown }),
      ...(settlement === undefined ? {} : { 'x402/payment-response': decode(settlement) }),
    },
  }
}
