/**
 * Checks a seller's signed offers and receipts for a buyer (x402 extension `offer-receipt`, version 1).
 *
 * A valid signature on an offer or receipt alone proves nothing, because anybody can sign with their own key. Therefore
 * the signing key must belong to the host of the resource, or to the payee.
 */

import { compactVerify, decodeProtectedHeader, importJWK, type JWK } from 'jose'
import { type Hex, recoverTypedDataAddress } from 'viem'
import { z } from 'zod'
import { isStorable } from '../storable.ts'
import type { UsdcNetwork } from '../till/usdc.ts'

/**
 * Sets the maximum number of characters of a stored signed offer or receipt. The service does not store a longer offer
 * or receipt.
 */
const PROOF_CHARS_MAX = 8192

export const PROOF_VERDICTS = ['valid', 'other_signer', 'mismatch', 'invalid', 'unchecked'] as const
/**
 * Describes the verdict about a signed offer or receipt. The verdict `valid` means that a key of the host or of the
 * payee signed the offer or receipt for the payment. The verdict `other_signer` means that an unrelated key signed the
 * offer or receipt for the payment. The verdict `mismatch` means that the offer or receipt was signed for another
 * payment, or that the offer had expired. The verdict `invalid` means that the signature of the offer or receipt is wrong. The verdict `unchecked`
 * means that the service could not read the signing key.
 */
export type ProofVerdict = (typeof PROOF_VERDICTS)[number]

/**
 * Sets how many seconds the seller's clock may be behind this machine's clock. If a receipt is older than the payment
 * by more than this time, it belongs to an earlier payment.
 */
const RECEIPT_SKEW_S = 60

const text = z.string().max(2048)
const seconds = z.number().int().nonnegative()
const payloads = {
  receipt: z.object({
    network: text,
    resourceUrl: text,
    payer: text,
    issuedAt: seconds,
    transaction: text.optional(),
    asset: text.optional(),
    payTo: text.optional(),
    amount: text.optional(),
  }),
  offer: z.object({
    network: text,
    resourceUrl: text,
    scheme: text,
    asset: text,
    payTo: text,
    amount: text,
    validUntil: seconds.optional(),
    issuedAt: seconds.optional(),
    maxTimeoutSeconds: seconds.optional(),
  }),
}
const eip712 = {
  receipt: z.object({
    version: seconds,
    network: text,
    resourceUrl: text,
    payer: text,
    issuedAt: seconds,
    transaction: text,
  }),
  offer: payloads.offer
    .pick({
      network: true,
      resourceUrl: true,
      scheme: true,
      asset: true,
      payTo: true,
      amount: true,
    })
    .extend({ version: seconds, validUntil: seconds }),
}

const signedSchema = z.union([
  z.object({
    format: z.literal('jws').optional(),
    // The check `isStorable` refuses null characters, because PostgreSQL cannot store them.
    signature: z.string().max(PROOF_CHARS_MAX).refine(isStorable),
  }),
  z.object({
    format: z.literal('eip712'),
    signature: z.string().regex(/^0x[0-9a-fA-F]{130}$/),
    payload: z.record(z.string(), z.unknown()),
  }),
])

/**
 * Returns the stored text of a signed offer or receipt: a compact JWS, or the JSON of EIP-712. @returns null if the
 * offer or receipt has an unknown format or is too long.
 */
export function keptProof(value: unknown): string | null {
  const read = signedSchema.safeParse(value)
  if (!read.success) return null
  const kept = 'payload' in read.data ? JSON.stringify(read.data) : read.data.signature
  return kept.length <= PROOF_CHARS_MAX ? kept : null
}

/** Describes the payment that a signed offer or receipt must match. */
export type ProofSubject = {
  caip2: string
  payer: string
  payTo: string
  asset: string
  amountAtomic: bigint
  /** Holds the time at which the purse signed the payment. */
  signedAt: Date
  /** Holds the transaction that the seller's settlement names, or null if it names none. */
  transaction: string | null
  /** Lists the names of the paid resource: the name in the seller's x402 challenge, and the requested URL. */
  resources: readonly string[]
}

/**
 * Describes a public key that may sign offers and receipts. The field `isOfHost` tells whether the public key belongs
 * to the host.
 */
export type KnownKey = { jwk: JWK; isOfHost: boolean }
/** Finds the public key that a `kid` (key id) names. @returns null if the key is not available. */
export type FindKey = (kid: string) => Promise<KnownKey | null>

/** Decides whether the right key signed a stored offer or receipt for a given payment. */
export async function judgeProof(
  kind: 'offer' | 'receipt',
  kept: string,
  { subject, findKey }: { subject: ProofSubject; findKey: FindKey },
): Promise<ProofVerdict> {
  return kept.startsWith('{')
    ? await judgeTyped(kind, kept, subject)
    : await judgeJws(kind, kept, { subject, findKey })
}

async function judgeJws(
  kind: 'offer' | 'receipt',
  jws: string,
  { subject, findKey }: { subject: ProofSubject; findKey: FindKey },
): Promise<ProofVerdict> {
  let kid: string | undefined
  let alg: string | undefined
  try {
    ;({ kid, alg } = decodeProtectedHeader(jws))
  } catch {
    return 'invalid'
  }
  if (kid === undefined || kid.length > 2048 || alg === undefined) return 'invalid'
  const known = await findKey(kid)
  if (known === null) return 'unchecked'
  let key: Awaited<ReturnType<typeof importJWK>>
  try {
    key = await importJWK(known.jwk, alg)
  } catch {
    return 'unchecked'
  }
  // The function refuses a symmetric key, because in a public document, everybody could read this key and sign with it.
  if (key instanceof Uint8Array) return 'invalid'
  let payload: unknown
  try {
    payload = JSON.parse(new TextDecoder().decode((await compactVerify(jws, key)).payload))
  } catch {
    return 'invalid'
  }
  if (!speaksOf(kind, payload, subject)) return 'mismatch'
  return known.isOfHost ? 'valid' : 'other_signer'
}

const DOMAINS = {
  offer: { name: 'x402 offer', version: '1', chainId: 1 },
  receipt: { name: 'x402 receipt', version: '1', chainId: 1 },
} as const
const strings = (...names: string[]) => names.map((name) => ({ name, type: 'string' }))
const number = (name: string) => ({ name, type: 'uint256' })
const TYPES = {
  offer: [
    number('version'),
    ...strings('resourceUrl', 'scheme', 'network', 'asset', 'payTo', 'amount'),
    number('validUntil'),
  ],
  receipt: [
    number('version'),
    ...strings('network', 'resourceUrl', 'payer'),
    number('issuedAt'),
    ...strings('transaction'),
  ],
}

/**
 * Parses a stored offer or receipt with an EIP-712 signature. @returns null if the stored text begins like such an
 * offer or receipt, but is none.
 */
function readTyped(kept: string): { payload: unknown; signature: Hex } | null {
  try {
    return JSON.parse(kept)
  } catch {
    return null
  }
}

/**
 * Decides whether an offer or receipt with an EIP-712 signature is valid for a payment. The signer of an EIP-712
 * signature must be the payee.
 */
async function judgeTyped(
  kind: 'offer' | 'receipt',
  kept: string,
  subject: ProofSubject,
): Promise<ProofVerdict> {
  const signed = readTyped(kept)
  const read = eip712[kind].safeParse(signed?.payload)
  if (signed === null || !read.success) return 'invalid'
  const primaryType = kind === 'offer' ? 'Offer' : 'Receipt'
  let signer: string
  try {
    signer = await recoverTypedDataAddress({
      domain: DOMAINS[kind],
      types: { [primaryType]: TYPES[kind] },
      primaryType,
      message: read.data,
      signature: signed.signature,
    })
  } catch {
    return 'invalid'
  }
  if (!speaksOf(kind, read.data, subject)) return 'mismatch'
  return isSame(signer, subject.payTo) ? 'valid' : 'other_signer'
}

const isSame = (left: string, right: string) => left.toLowerCase() === right.toLowerCase()

/**
 * Tells whether each known member of a signed offer or receipt agrees with the payment. An empty text or a zero counts
 * as an absent member, because EIP-712 has no optional members.
 */
function speaksOf(kind: 'offer' | 'receipt', payload: unknown, subject: ProofSubject): boolean {
  const { caip2, payer, payTo, asset, amountAtomic, resources, transaction } = subject
  const signedAtS = Math.floor(subject.signedAt.getTime() / 1000)
  const agrees = (given: string | undefined, expected: string | null) =>
    given === undefined || given === '' || (expected !== null && isSame(given, expected))
  const isOurs = (one: { network: string; resourceUrl: string }) =>
    one.network === caip2 && resources.includes(one.resourceUrl)
  if (kind === 'receipt') {
    const read = payloads.receipt.safeParse(payload)
    if (!read.success) return false
    const receipt = read.data
    return (
      isOurs(receipt) &&
      isSame(receipt.payer, payer) &&
      receipt.issuedAt >= signedAtS - RECEIPT_SKEW_S &&
      agrees(receipt.transaction, transaction) &&
      agrees(receipt.asset, asset) &&
      agrees(receipt.payTo, payTo) &&
      agrees(receipt.amount, String(amountAtomic))
    )
  }
  const read = payloads.offer.safeParse(payload)
  if (!read.success) return false
  const offer = read.data
  return (
    isOurs(offer) &&
    offer.scheme === 'exact' &&
    isSame(offer.asset, asset) &&
    isSame(offer.payTo, payTo) &&
    offer.amount === String(amountAtomic) &&
    signedAtS <= endOf(offer)
  )
}

/**
 * Returns the time in Unix seconds at which a seller's signed offer ends. A signed offer without such a time never
 * ends.
 */
function endOf({ validUntil, issuedAt, maxTimeoutSeconds }: z.output<typeof payloads.offer>) {
  const ends = [
    validUntil || Infinity,
    (issuedAt && maxTimeoutSeconds && issuedAt + maxTimeoutSeconds) || Infinity,
  ]
  return Math.min(...ends)
}

const offersSchema = z.object({
  'offer-receipt': z.object({ info: z.object({ offers: z.array(z.unknown()).max(32) }) }),
})

/**
 * Returns the stored text of a signed offer from a seller's 402 response. The function prefers the offer with the
 * payment's price, payee, chain and token, and otherwise takes the first signed offer. @returns null if the response
 * has no signed offer.
 */
export function keptOffer(
  extensions: unknown,
  {
    payTo,
    amountAtomic,
    network: { caip2, usdcAddress },
  }: {
    payTo: string
    amountAtomic: bigint
    network: Pick<UsdcNetwork, 'caip2' | 'usdcAddress'>
  },
): string | null {
  const read = offersSchema.safeParse(extensions)
  if (!read.success) return null
  const kept = read.data['offer-receipt'].info.offers.map(keptProof).filter((one) => one !== null)
  const isOfPayment = (one: string) => {
    const { data } = payloads.offer.safeParse(unverified(one))
    return (
      data !== undefined &&
      isSame(data.payTo, payTo) &&
      data.amount === String(amountAtomic) &&
      data.network === caip2 &&
      isSame(data.asset, usdcAddress)
    )
  }
  return kept.find(isOfPayment) ?? kept[0] ?? null
}

/** Returns the content of a stored offer or receipt without a check of its signature. */
function unverified(kept: string): unknown {
  try {
    if (kept.startsWith('{')) return (JSON.parse(kept) as { payload: unknown }).payload
    return JSON.parse(Buffer.from(kept.split('.')[1] ?? '', 'base64url').toString('utf8'))
  } catch {
    return null
  }
}
