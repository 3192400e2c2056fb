import { getAddress, zeroAddress } from 'viem'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import type { Queryable } from '../../sql/db.ts'
import { isGasWallet } from '../../sql/till/endpoints/seller.ts'
import { badRequest } from '../http/errors.ts'

/**
 * Refuses a pay-to address at which the seller's money would be lost. The function does not check the syntax of the
 * address, because the request schema has already done so.
 * @throws {ApiError} 400 for a pay-to address at which the money would be lost.
 */
export async function checkPayTo(
  db: Queryable,
  payTo: string | null | undefined,
  field = 'payTo',
): Promise<void> {
  if (payTo === null || payTo === undefined) return
  const digits = payTo.slice(2)
  const isMixed = digits !== digits.toLowerCase() && digits !== digits.toUpperCase()
  if (isMixed && payTo !== getAddress(payTo.toLowerCase())) {
    throw badRequest(
      `${field} must have the checksum of EIP-55, or no upper-case letters: copy the address again, a digit may be wrong`,
    )
  }
  const address = payTo.toLowerCase()
  if (address === zeroAddress) throw badRequest(`${field} must not be the zero address`)
  const tokens = Object.values(USDC_NETWORKS).map(({ usdcAddress }) => usdcAddress.toLowerCase())
  if (tokens.includes(address)) {
    throw badRequest(`${field} must not be the USDC contract: what it receives is lost`)
  }
  if (await isGasWallet(db, address)) {
    throw badRequest(
      `${field} must not be a gas wallet of this service: use an address of your own`,
    )
  }
}
