/** Writes the signed payment of a purchase into the header of either version of x402. */
import { randomBytes } from 'node:crypto'
import { type Address, getAddress, type Hex } from 'viem'
import { z } from 'zod'
import { authorizationDigest } from '../till/authorization.ts'
import { encodeHeader, PAYMENT_IDENTIFIER } from '../till/x402v2.ts'
import type { Offer } from './offers.ts'

/** Describes an HTTP header that carries a signed payment. */
export type PaymentHeader = { name: string; value: string }

/**
 * Signs 32 bytes with the private key that belongs to an address. The signature has 65 bytes, and the last byte v of
 * the signature is 27 or 28.
 */
export type DigestSigner = { address: Address; sign(digest: Hex): Promise<Hex> }

/**
 * Signs one EIP-3009 authorization for the exact price of a purchase. The EIP-712 domain of the signature comes from
 * the service's own table of tokens.
 * @param nonce holds the 32 bytes of the authorization's nonce, which are random by default.
 * @returns the payment header, the nonce of the authorization, and the Unix time in seconds at which the authorization
 * expires.
 */
export async function signPayment(
  offer: Offer,
  signer: DigestSigner,
  nonce: Hex = `0x${randomBytes(32).toString('hex')}`,
): Promise<{ header: PaymentHeader; nonce: Hex; validBefore: bigint }> {
  const { network, amountAtomic, payTo } = offer
  const validBefore = BigInt(Math.floor(Date.now() / 1000) + offer.windowS)
  const authorization = {
    from: signer.address,
    to: getAddress(payTo),
    value: amountAtomic,
    // The value 0 of `validAfter` makes the signature valid at once, even if this machine's clock is ahead of the
    // chain's clock.
    validAfter: 0n,
    validBefore,
    nonce,
  }
  const signature = await signer.sign(authorizationDigest(authorization, network))
  const payload = {
    signature,
    authorization: {
      ...authorization,
      value: String(amountAtomic),
      validAfter: '0',
      validBefore: String(validBefore),
    },
  }
  return { header: headerWith(offer, payload), nonce, validBefore }
}

function headerWith({ challenge, raw, network }: Offer, payload: object): PaymentHeader {
  if (challenge.x402Version === 1) {
    const value = { x402Version: 1, scheme: 'exact', network: network.network, payload }
    return { name: 'X-PAYMENT', value: encodeHeader(value) }
  }
  const { resource, extensions } = challenge
  return {
    name: 'PAYMENT-SIGNATURE',
    value: encodeHeader({
      x402Version: 2,
      ...(resource === null ? {} : { resource }),
      accepted: raw,
      payload,
      ...(extensions === null ? {} : { extensions: named(extensions) }),
    }),
  }
}

const requiredName = z.looseObject({
  [PAYMENT_IDENTIFIER]: z.looseObject({ info: z.looseObject({ required: z.literal(true) }) }),
})

/**
 * Returns the extensions of the x402 challenge with a name for the payment, if the seller requires such a name (x402
 * extension `payment-identifier`), because the seller would refuse a payment without a name.
 */
function named(extensions: unknown): unknown {
  const { data } = requiredName.safeParse(extensions)
  if (data === undefined) return extensions
  const declared = data[PAYMENT_IDENTIFIER]
  const info = { ...declared.info, id: `pay_${randomBytes(16).toString('hex')}` }
  return { ...data, [PAYMENT_IDENTIFIER]: { ...declared, info } }
}
