/** Payments of contract wallets that reverted on chain, though their simulation had passed. */
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { failAndSuspend, findRevertedCodes } from '../../../sql/till/settle/walletSuspensions.ts'
import { hasCode, isUsed } from '../chain/chain.ts'
import { type KnownChain, refreshHead } from '../chain/chainView.ts'
import { examineUsed } from './usedAuthorization.ts'

/** The payments whose contract wallet reverted, each with the work that ends it. Both throw RpcTrouble. */
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

/** A second deployment burns its gas without the wallet's fault. Its payment is sent once more, without the deployment. */
async function wasDeployedByAnother(chain: KnownChain, payment: Payment): Promise<boolean> {
  if (payment.deployment === null || payment.revertCount > 1) return false
  await refreshHead(chain)
  return hasCode(chain.rpc, payment.payer, chain.head.number)
}

/** Anyone may settle an authorization before us: our transaction then reverts without the wallet's fault. */
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
