/**
 * Reads the payment offers in a seller's 402 response for a buyer. Nobody vouches for the seller, so the buyer does not
 * trust the response. The buyer trusts only the values that {@link chooseOffer} has compared with the service's table
 * of tokens.
 *
 * Standards: x402 v1 §5, v2 §5, HTTP transports v1 and v2; scheme `exact` on EVM with EIP-3009.
 */

import { z } from 'zod'
import { isStorable } from '../storable.ts'
import { type UsdcNetwork, usdcNetworkOf } from '../till/usdc.ts'
import type { RefusalReason } from './refusal.ts'

/**
 * Sets the maximum number of characters of a header or body with an x402 challenge. A usual x402 challenge has about 3
 * KB.
 */
const CHALLENGE_CHARS_MAX = 32 * 1024
const OFFERS_MAX = 32

/**
 * WINDOW_MIN_S is the minimum number of seconds for which a payment's signature must be valid, because a seller needs
 * time to settle the payment. WINDOW_MAX_S is the maximum number of seconds for which a purse (a project's wallet)
 * makes a signature valid.
 */
const WINDOW_MIN_S = 15
const WINDOW_MAX_S = 120

/**
 * Describes one entry of `accepts` in a seller's 402 response, with the names of x402 version 2. The field `raw` is the
 * unchanged received entry, because a payment of version 2 repeats the entry.
 */
type Entry = {
  scheme: string
  network: string
  amount: string
  asset: string
  payTo: string
  maxTimeoutSeconds: number
  extra: Record<string, unknown>
  resource: string | null
  description: string | null
  raw: unknown
}

/** Describes the x402 challenge in a seller's 402 response. */
export type SellerChallenge = {
  x402Version: 1 | 2
  entries: Entry[]
  /**
   * Holds the members `resource` and `extensions` of an x402 version 2 challenge unchanged, because the payment repeats
   * both members.
   */
  resource: unknown
  extensions: unknown
  /** Holds the seller's reason for the 402 response, for example the reason why the seller refused a payment. */
  error: string | null
}

const text = z.string().max(2048).refine(isStorable)
const entry = {
  scheme: text,
  network: text,
  asset: text,
  payTo: text,
  maxTimeoutSeconds: z.number(),
  extra: z.record(z.string(), z.unknown()).nullish().catch(null),
}
const optionalText = text.nullish().catch(null)

const accepts = z.array(z.unknown()).max(OFFERS_MAX)

const v1Schema = z.object({ x402Version: z.literal(1), error: optionalText, accepts })
const v1Entry = z.object({
  ...entry,
  maxAmountRequired: text,
  resource: optionalText,
  description: optionalText,
})

const v2Schema = z.object({
  x402Version: z.literal(2),
  error: optionalText,
  resource: z.object({ url: optionalText, description: optionalText }).nullish().catch(null),
  accepts,
})
const v2Entry = z.object({ ...entry, amount: text })

/**
 * Reads the entries of `accepts`. The function leaves out an unreadable entry, because another entry of the same
 * challenge may be for another kind of buyer. @returns null if `accepts` has entries and none of them is readable.
 */
function readEntries<Read>(
  schema: z.ZodType<Read>,
  raws: readonly unknown[],
): { read: Read; raw: unknown }[] | null {
  const entries = raws.flatMap((raw) => {
    const { data } = schema.safeParse(raw)
    return data === undefined ? [] : [{ read: data, raw }]
  })
  return entries.length === 0 && raws.length > 0 ? null : entries
}

/**
 * Reads the x402 challenge of a 402 response. The function reads the body only if the header of x402 version 2 is
 * absent.
 * @param header is the value of the response's header `PAYMENT-REQUIRED`. Null means that the response has no such
 * header.
 * @returns null if the 402 response holds no readable x402 challenge.
 */
export function readChallenge(header: string | null, body: string): SellerChallenge | null {
  if (header !== null) return readV2(decoded(header))
  const value = body.length > CHALLENGE_CHARS_MAX ? null : parsed(body)
  return readV1(value) ?? readV2(value)
}

function readV1(value: unknown): SellerChallenge | null {
  const { data } = v1Schema.safeParse(value)
  const found = data === undefined ? null : readEntries(v1Entry, data.accepts)
  if (data === undefined || found === null) return null
  const entries = found.map(({ read: { maxAmountRequired, extra, resource, ...rest }, raw }) => ({
    ...rest,
    amount: maxAmountRequired,
    extra: extra ?? {},
    resource: resource ?? null,
    description: rest.description ?? null,
    raw,
  }))
  return { x402Version: 1, entries, resource: null, extensions: null, error: data.error ?? null }
}

function readV2(value: unknown): SellerChallenge | null {
  const { data } = v2Schema.safeParse(value)
  const found = data === undefined ? null : readEntries(v2Entry, data.accepts)
  if (data === undefined || found === null) return null
  const given = value as { resource?: unknown; extensions?: unknown }
  const entries = found.map(({ read: { extra, ...rest }, raw }) => ({
    ...rest,
    extra: extra ?? {},
    resource: data.resource?.url ?? null,
    description: data.resource?.description ?? null,
    raw,
  }))
  return {
    x402Version: 2,
    entries,
    resource: given.resource ?? null,
    extensions: given.extensions ?? null,
    error: data.error ?? null,
  }
}

function decoded(header: string): unknown {
  if (header.length > CHALLENGE_CHARS_MAX) return null
  return parsed(Buffer.from(header, 'base64').toString('utf8'))
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}

/**
 * Describes a seller's offer that the purse may sign, because its scheme, chain, token and lifetime are acceptable. The
 * payee's address `payTo` is in lower case.
 */
export type Offer = {
  challenge: SellerChallenge
  raw: unknown
  network: UsdcNetwork
  amountAtomic: bigint
  payTo: string
  windowS: number
  resource: string | null
  description: string | null
}

/**
 * Replaces the seller's texts in an offer by null, because a seller that knows a secret of the vault could repeat the
 * secret in these texts.
 */
export const WORDLESS = { resource: null, description: null } as const

export type Chosen = { ok: true; offer: Offer } | { ok: false; reason: RefusalReason }

const AMOUNT = /^[1-9]\d{0,17}$/
const ADDRESS = /^0x[0-9a-fA-F]{40}$/
const ZERO = /^0x0{40}$/

/**
 * Returns the cheapest USDC offer on the purse's chain. The function ignores cheaper offers on another chain or in
 * another token.
 * @param dialled.url is the requested URL to which the seller responded with 402.
 * @param dialled.payer is the address of the purse. The function refuses an offer that names the purse itself as the
 * payee.
 */
export function chooseOffer(
  challenge: SellerChallenge,
  { url, network, payer }: { url: string; network: UsdcNetwork; payer: string },
): Chosen {
  const ours = challenge.entries.filter((one) => isOurs(one, network))
  if (ours.length === 0) return { ok: false, reason: 'no_offer' }
  const faults: RefusalReason[] = []
  const offers: Offer[] = []
  for (const one of ours) {
    const fault = faultOf(one, { url, network, payer })
    if (fault === null) offers.push(toOffer(challenge, one, network))
    else faults.push(fault)
  }
  // The sort keeps the order of offers with equal prices. Therefore the function chooses, among the cheapest offers,
  // the offer that the seller listed first.
  offers.sort((left, right) => Number(left.amountAtomic - right.amountAtomic))
  const [offer] = offers
  return offer === undefined ? { ok: false, reason: faults[0]! } : { ok: true, offer }
}

/**
 * Lists the accepted payment flows of x402. The payer signs the same data in each of them. In the flow `upfront`, the
 * seller settles the payment before the delivery of the resource.
 */
const PAYMENT_FLOWS: readonly (string | null | undefined)[] = [
  'authorization',
  'upfront',
  undefined,
  null,
]

const isOurs = ({ scheme, network, asset, extra }: Entry, ours: UsdcNetwork): boolean =>
  scheme === 'exact' &&
  usdcNetworkOf(network)?.network === ours.network &&
  asset.toLowerCase() === ours.usdcAddress.toLowerCase() &&
  ['eip3009', undefined, null].includes(extra.assetTransferMethod as string) &&
  PAYMENT_FLOWS.includes(extra.paymentFlow as string | undefined)

function faultOf(
  { amount, payTo, maxTimeoutSeconds, extra, resource }: Entry,
  { url, network, payer }: { url: string; network: UsdcNetwork; payer: string },
): RefusalReason | null {
  const { eip712Name, eip712Version, usdcAddress } = network
  // The function refuses an offer with the EIP-712 domain of another token, because the signature would be valid for
  // the other token.
  if (![eip712Name, undefined, null].includes(extra.name as string)) return 'token_mismatch'
  if (![eip712Version, undefined, null].includes(extra.version as string)) return 'token_mismatch'
  if (!AMOUNT.test(amount) || !ADDRESS.test(payTo)) return 'malformed_challenge'
  const payee = payTo.toLowerCase()
  if (ZERO.test(payee) || payee === usdcAddress.toLowerCase() || payee === payer.toLowerCase()) {
    return 'bad_payee'
  }
  if (!Number.isSafeInteger(maxTimeoutSeconds) || maxTimeoutSeconds < WINDOW_MIN_S) {
    return 'bad_window'
  }
  return resource === null || hostOf(resource) === null || hostOf(resource) === hostOf(url)
    ? null
    : 'resource_of_another_host'
}

/** Returns the host of an absolute URL. @returns null for a path, the URI of an MCP tool, or a text that is no URL. */
function hostOf(address: string): string | null {
  if (!/^https?:/i.test(address) || !URL.canParse(address)) return null
  return new URL(address).host
}

const toOffer = (challenge: SellerChallenge, one: Entry, network: UsdcNetwork): Offer => ({
  challenge,
  raw: one.raw,
  network,
  amountAtomic: BigInt(one.amount),
  payTo: one.payTo.toLowerCase(),
  windowS: Math.min(one.maxTimeoutSeconds, WINDOW_MAX_S),
  resource: one.resource,
  description: one.description,
})
