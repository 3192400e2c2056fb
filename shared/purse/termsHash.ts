import { createHash } from 'node:crypto'
import { canonicalJson } from '../canonicalJson.ts'
import type { Offer } from './offers.ts'

/** Computes the SHA-256 of the payment terms that an owner approves: price, payee, token, chain and resource. */
export const termsHash = ({ network, amountAtomic, payTo, resource }: Offer): Buffer =>
  createHash('sha256')
    .update(
      canonicalJson({
        network: network.network,
        asset: network.usdcAddress,
        amountAtomic: String(amountAtomic),
        payTo,
        resource,
      }),
    )
    .digest()
