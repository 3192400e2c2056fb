import { findDeployingPayers } from '../../sql/till/gasWallets.ts'
import type { Payment } from '../../sql/till/payments.ts'
import { hasCode } from './chain.ts'
import { type KnownChain, refreshHead } from './chainView.ts'

/**
 * The payment, without a deployment where the wallet is there by now: repeating it would burn all the gas.
 * @throws {RpcTrouble}
 */
export async function withoutIdleDeployment(chain: KnownChain, payment: Payment): Promise<Payment> {
  if (payment.deployment === null) return payment
  const deployed = await hasCode(chain.rpc, payment.payer, chain.head.number)
  return deployed ? { ...payment, deployment: null } : payment
}

/**
 * Sorts out which payments may deploy their payer's wallet now. A second deployment of the same wallet burns all its
 * gas, so that each wallet has one under way at most; and one that is there by now is only charged.
 * @throws {RpcTrouble}
 */
export async function sortDeployments(
  chain: KnownChain,
  payments: readonly Payment[],
): Promise<{ ready: Payment[]; held: Payment[] }> {
  const wallets = [...new Set(payments.flatMap((one) => (one.deployment ? [one.payer] : [])))]
  if (wallets.length === 0) return { ready: [...payments], held: [] }
  await refreshHead(chain)
  const busy = await findDeployingPayers(chain.pool, chain.network.chainId, wallets)
  const ready: Payment[] = []
  const held: Payment[] = []
  for (const stored of payments) {
    const payment = await withoutIdleDeployment(chain, stored)
    const mustWait = payment.deployment !== null && busy.has(payment.payer)
    ;(mustWait ? held : ready).push(payment)
    if (payment.deployment !== null) busy.add(payment.payer)
  }
  return { ready, held }
}
