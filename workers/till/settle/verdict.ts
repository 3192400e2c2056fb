/** Decides whether a payment that could not be sent has failed or must wait. */
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { postponePayments } from '../../../sql/till/settle/settlementQueue.ts'
import { failPayment } from '../../../sql/till/settle/settlements.ts'
import { hasCode, isUsed } from '../chain/chain.ts'
import { type ChainView, type KnownChain, refreshHead } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { transferGas } from '../chain/transfer.ts'
import type { ChainRefusal, Simulated } from '../trial/simulation.ts'
import { nextAccount, senderOf } from '../trial/trial.ts'
import { simulate } from '../trial/trialCalls.ts'
import { examineUsed } from '../watch/usedAuthorization.ts'

const TROUBLE_DELAY_MS = 250
const TROUBLE_DELAY_MAX_MS = 5_000
/**
 * Limits how often a payment of a wallet contract may contradict itself: the chain refuses it in one simulation and
 * accepts it in the next. A wallet contract can contradict itself for ever, because its result may depend on the gas or
 * on the block. Without this limit, 20,000 such payments stopped the settlement of all projects. A node that lags
 * behind needs far fewer attempts to catch up.
 */
const CONTRADICTIONS_MAX = 20

/**
 * Runs the function `work`, which handles one payment. If the RPC node does not respond, only this payment is
 * postponed.
 */
export async function orPostpone(
  chain: KnownChain,
  payment: Payment,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (!(error instanceof RpcTrouble)) throw error
    await postpone(chain, [payment], error.message)
  }
}

/**
 * Records a refused payment as failed only if the highest block that this process has seen confirms the refusal. A
 * payment must not fail because a chain node lags behind, or because the payer's money is just arriving.
 * @param isContract tells whether the payer is a wallet contract.
 */
export async function judgeRefusal(
  chain: KnownChain,
  payment: Payment,
  refusal: ChainRefusal,
  { isContract = false } = {},
): Promise<void> {
  if (refusal.kind === 'used') return examineUsed(chain, payment)
  if (refusal.kind === 'suspended') return fail(chain, payment, refusal)
  if (refusal.kind !== 'final') return postpone(chain, [payment], refusal.detail)
  const confirmed = await confirmRefusal(chain, payment, refusal)
  if (!confirmed) return contradict(chain, payment, refusal, isContract)
  // The token contract checks the blacklist of payers before the nonce. Therefore a refusal because of the blacklist
  // does not prove that the authorization is unused.
  if (await isUsed(chain.rpc, payment, chain.head.number)) return examineUsed(chain, payment)
  await fail(chain, payment, refusal)
}

/**
 * Postpones a payment whose refusal is not confirmed. A payment of a wallet contract fails instead after
 * CONTRADICTIONS_MAX such refusals.
 */
async function contradict(
  chain: KnownChain,
  payment: Payment,
  refusal: ChainRefusal,
  isContract: boolean,
): Promise<void> {
  if (!isContract) return postpone(chain, [payment], refusal.detail)
  if (payment.contradictionCount < CONTRADICTIONS_MAX) {
    return postpone(chain, [payment], refusal.detail, { isContradicted: true })
  }
  await fail(chain, payment, {
    kind: 'final',
    reason: 'invalid_transaction_state',
    detail: `the simulations of the contract wallet contradict each other: ${refusal.detail}`,
  })
}

/**
 * Tells whether a payment is also refused at the highest block that this process has seen. The refusal `early` (not yet
 * valid) at that block counts as the same refusal, because only the time of the block differs. If the wallet of the
 * payer was deployed in the meantime, the refusal is not confirmed, and the payment is simulated again without the
 * deployment.
 */
export async function confirmRefusal(
  chain: KnownChain,
  transfer: Parameters<typeof simulate>[1][number],
  refusal: ChainRefusal,
): Promise<boolean> {
  await refreshHead(chain)
  if (
    transfer.deployment !== null &&
    (await hasCode(chain.rpc, transfer.payer, chain.head.number))
  ) {
    return false
  }
  const sender = senderOf(chain, nextAccount(chain, transferGas(transfer)))
  const options = { ...sender, block: chain.head.number }
  const [again] = (await simulate(chain.rpc, [transfer], options)) as [Simulated]
  if (again.kind !== 'refused') return false
  return again.refusal.detail === refusal.detail || again.refusal.kind === 'early'
}

/**
 * Handles a payment whose authorization has expired, so that no later block can accept it. Records the payment as
 * failed, unless the authorization was used.
 */
export async function settleExpired(chain: KnownChain, payment: Payment): Promise<void> {
  if (await isUsed(chain.rpc, payment, chain.head.number)) return examineUsed(chain, payment)
  const refusal: ChainRefusal = {
    kind: 'expired',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    detail: 'expired before it could be settled',
  }
  await fail(chain, payment, refusal, { cannotPay: true })
}

/**
 * Records a payment as failed because its authorization can no longer be settled.
 * @param cannotPay is true if no open transaction of the payment can still take the money.
 */
export async function fail(
  chain: ChainView,
  payment: Payment,
  refusal: ChainRefusal,
  { cannotPay = false } = {},
): Promise<void> {
  await failPayment(chain.pool, {
    paymentId: payment.id,
    stage: payment.txHash === null ? 'verify' : 'settle',
    reason: refusal.reason,
    detail: refusal.detail,
    cannotPay,
  })
}

/**
 * Postpones the settlement of payments. The delays between the settlement attempts grow exponentially.
 * @param isContradicted is true if two simulations of a wallet contract contradict each other.
 */
export async function postpone(
  view: ChainView,
  payments: readonly Payment[],
  trouble: string,
  { isContradicted = false } = {},
): Promise<void> {
  view.log.debug({ trouble, payments: payments.length }, 'payments have to wait')
  await postponePayments(
    view.pool,
    payments.map((payment) => ({
      paymentId: payment.id,
      trouble,
      isContradicted,
      runAt: new Date(
        Date.now() +
          Math.min(
            TROUBLE_DELAY_MS * 2 ** Math.min(payment.troubleCount, 10),
            TROUBLE_DELAY_MAX_MS,
          ),
      ),
    })),
  )
}
