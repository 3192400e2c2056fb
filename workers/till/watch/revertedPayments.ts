/**
 * Handles payments of contract wallets if their transactions reverted on the chain although their simulation succeeded.
 */
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { failAndSuspend, findRevertedCodes } from '../../../sql/till/settle/walletSuspensions.ts'
import { hasCode, isUsed } from '../chain/chain.ts'
import { type KnownChain, refreshHead } from '../chain/chainView.ts'
import { examineUsed } from './usedAuthorization.ts'

/**
 * Finds the payments that reverted on the chain because of their wallet contract. @returns a function for each reverted
 * payment, which ends the payment and may throw RpcTrouble.
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
    const code = codes.get(payment.id)
    if (code !== undefined && !(await wasDeployedByAnother(chain, payment)))
      found.set(payment, () => endReverted(chain, payment, code))
  }
  return found
}

/**
 * Tells whether another party deployed the wallet of the payer first. A second deployment of the same wallet uses up
 * its gas, although the wallet did nothing wrong. If another party deployed the wallet first, the payment is sent once
 * more, without the deployment of the wallet.
 */
async function wasDeployedByAnother(chain: KnownChain, payment: Payment): Promise<boolean> {
  if (payment.deployment === null || payment.revertCount > 1) return false
  await refreshHead(chain)
  return hasCode(chain.rpc, payment.payer, chain.head.number)
}

/**
 * Ends a payment after its transaction has reverted. Anyone may settle a payment authorization before this service
 * does. If another party settled the payment authorization first, the transaction of this service reverts, although the
 * wallet of the payer did nothing wrong.
 */
async function endReverted(chain: KnownChain, payment: Payment, code: `0x${string}`) {
  await refreshHead(chain)
  if (await isUsed(chain.rpc, payment, chain.head.number)) return examineUsed(chain, payment)
  await failAndSuspend(chain.pool, {
    paymentId: payment.id,
    chainId: payment.chainId,
    payer: payment.payer,
    code,
    reason: 'invalid_transaction_state',
    detail: 'the contract wallet reverted on chain, and is not tried again',
  })
}
