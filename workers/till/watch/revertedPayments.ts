/**
 * Handles payments of contract wallets if their transactions reverted on the chain although their simulation succeeded.
 */
import type { Hex } from 'viem'
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { failAndSuspend, findRevertedCodes } from '../../../sql/till/settle/walletSuspensions.ts'
import { hasCode, isUsed } from '../chain/chain.ts'
import { type KnownChain, refreshHead } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { examineUsed } from './usedAuthorization.ts'

/** Holds the hash of a wallet's code, and the newest block in which this wallet made a transaction revert. */
type Revert = { code: Hex; block: bigint }

/**
 * Finds the payments that reverted on the chain because of their wallet contract. @returns for each reverted payment a
 * function that ends the payment and may throw RpcTrouble.
 */
export async function findReverted(
  chain: KnownChain,
  payments: readonly Payment[],
): Promise<Map<Payment, () => Promise<void>>> {
  const suspects = payments.filter((payment) => payment.revertCount > 0)
  if (suspects.length === 0) return new Map()
  const codes = await findRevertedCodes(
    chain.pool,
    suspects.map((payment) => payment.id),
  )
  const found = new Map<Payment, () => Promise<void>>()
  for (const payment of suspects) {
    const revert = codes.get(payment.id)
    if (revert === undefined) continue
    try {
      if (await wasDeployedByAnother(chain, payment, revert)) continue
      found.set(payment, () => endReverted(chain, payment, revert))
    } catch (error) {
      // A chain node that lags behind delays only this payment, so the other payments of the batch go on.
      if (!(error instanceof RpcTrouble)) throw error
      found.set(payment, () => Promise.reject(error))
    }
  }
  return found
}

/**
 * Tells whether another party deployed the wallet of the payer first. The second deployment by this service then uses
 * up its gas, although the wallet did nothing wrong. Therefore the payment is sent once more, without the deployment.
 */
async function wasDeployedByAnother(
  chain: KnownChain,
  payment: Payment,
  revert: Revert,
): Promise<boolean> {
  if (payment.deployment === null || payment.revertCount > 1) return false
  return hasCode(chain.rpc, payment.payer, await blockAfter(chain, revert))
}

/**
 * Ends a payment after its transaction has reverted. Anyone may settle a payment authorization before this service
 * does. The transaction of this service then reverts, although the wallet of the payer did nothing wrong.
 */
async function endReverted(chain: KnownChain, payment: Payment, revert: Revert) {
  const block = await blockAfter(chain, revert)
  if (await isUsed(chain.rpc, payment, block)) return examineUsed(chain, payment)
  await failAndSuspend(chain.pool, {
    paymentId: payment.id,
    chainId: payment.chainId,
    payer: payment.payer,
    code: revert.code,
    reason: 'invalid_transaction_state',
    detail: 'the contract wallet reverted on chain, and is not tried again',
  })
}

/**
 * Returns the higher of two block numbers: the newest block, and the block with the revert. A chain node that lags
 * behind may know only a block before the revert. Such a block lacks the transfer or deployment that caused the revert,
 * so the service would blame the wallet.
 */
async function blockAfter(chain: KnownChain, { block }: Revert): Promise<bigint> {
  await refreshHead(chain)
  return chain.head.number > block ? chain.head.number : block
}
