/** Writes the x402 header of a payment again from the stored fields of the payment. */
import { serializeErc6492Signature } from 'viem'
import type { Transfer } from './authorization.ts'
import type { NetworkName } from './usdc.ts'
import { buildChallenge } from './x402.ts'
import { encodeHeader, PAYMENT_IDENTIFIER, toRequirementV2 } from './x402v2.ts'

type Paid = Transfer & {
  x402Version: 1 | 2
  network: NetworkName
  resourceUrl: string
  paymentIdentifier: string | null
}

/**
 * Returns the x402 header of a stored payment, with the payer's authorization and signature. The service does not store
 * the other parts of the payer's header. Therefore the payment requirement in the header comes from this service's
 * challenge, and its spelling may differ from the payer's header.
 */
export function paidHeader(paid: Paid): { name: string; value: string } {
  const { x402Version, network, signature: bare, deployment, resourceUrl, paymentIdentifier } = paid
  const signature =
    deployment === null
      ? bare
      : serializeErc6492Signature({
          address: deployment.factory,
          data: deployment.factoryData,
          signature: bare,
        })
  const payload = {
    signature,
    authorization: {
      from: paid.payer,
      to: paid.recipient,
      value: String(paid.amountAtomic),
      validAfter: String(paid.validAfter),
      validBefore: String(paid.validBefore),
      nonce: paid.nonce,
    },
  }
  if (x402Version === 1) {
    return {
      name: 'X-PAYMENT',
      value: encodeHeader({ x402Version, scheme: 'exact', network, payload }),
    }
  }
  const { amountAtomic, recipient: payTo } = paid
  const { accepts } = buildChallenge({ network, amountAtomic, resource: resourceUrl, payTo })
  const extensions =
    paymentIdentifier === null
      ? {}
      : { extensions: { [PAYMENT_IDENTIFIER]: { info: { id: paymentIdentifier } } } }
  const value = {
    x402Version,
    resource: { url: resourceUrl },
    accepted: toRequirementV2(accepts[0]!),
    payload,
    ...extensions,
  }
  return { name: 'PAYMENT-SIGNATURE', value: encodeHeader(value) }
}
