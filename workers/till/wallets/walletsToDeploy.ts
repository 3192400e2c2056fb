import type { Payment } from '../../../sql/till/payments/payments.ts'
import { findUnprovenUnderWay } from '../../../sql/till/settle/walletSuspensions.ts'
import { findDeployingPayers } from '../../../sql/till/watch/openTransactions.ts'
import { hasCode } from '../chain/chain.ts'
import { type KnownChain, refreshHead } from '../chain/chainView.ts'
import type { Sending } from '../settle/gasWallet.ts'

/**
 * Removes the wallet deployment from a payment if the payer's wallet already has code, because a second deployment
 * burns all the gas.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function withoutNeedlessDeployment(
  chain: KnownChain,
  payment: Payment,
): Promise<Payment> {
  if (payment.deployment === null) return payment
  const deployed = await hasCode(chain.rpc, payment.payer, chain.head.number)
  return deployed ? { ...payment, deployment: null } : payment
}

/**
 * Splits payments into payments that may be sent now, and payments that must wait because their payer's wallet is being
 * deployed. A second deployment of the same wallet uses up all its gas, so each wallet has at most one pending
 * deployment. A payment from an already deployed wallet never waits.
 * @throws {RpcTrouble} if the chain node does not respond.
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
    const payment = await withoutNeedlessDeployment(chain, stored)
    const mustWait = payment.deployment !== null && busy.has(payment.payer)
    ;(mustWait ? held : ready).push(payment)
    if (payment.deployment !== null) busy.add(payment.payer)
  }
  return { ready, held }
}

/**
 * Limits payments from wallets whose contract code has not paid successfully yet. Only one pending payment per contract
 * code may pass, and the others wait. Without this rule, many payments from wallets with the same bad code could use up
 * gas before the first revert became known.
 */
export async function holdUnproven(
  chain: KnownChain,
  sendings: readonly Sending[],
): Promise<{ free: Sending[]; held: Payment[] }> {
  const codes = [...new Set(sendings.flatMap(({ code }) => code ?? []))]
  if (codes.length === 0) return { free: [...sendings], held: [] }
  const { chainId } = chain.network
  const { unproven, underWay } = await findUnprovenUnderWay(chain.pool, chainId, codes)
  const free: Sending[] = []
  const held: Payment[] = []
  for (const sending of sendings) {
    const { code } = sending
    if (code !== null && underWay.has(code)) held.push(sending.payment)
    else free.push({ ...sending, isLone: code !== null && unproven.has(code) })
    if (code !== null && unproven.has(code)) underWay.add(code)
  }
  return { free, held }
}
