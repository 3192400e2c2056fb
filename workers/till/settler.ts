/** Settles claimed payments: simulate, sign, store, broadcast. The watcher follows the transactions. */
import type { PrivateKeyAccount } from 'viem/accounts'
import { findOpenTransactions } from '../../sql/till/gasWallets.ts'
import { findPayments, type Payment } from '../../sql/till/payments.ts'
import { failPayment, postponePayments } from '../../sql/till/settlements.ts'
import { hasCode, isUsed, simulate } from './chain.ts'
import { type ChainView, isKnown, type KnownChain, refreshHead } from './chainView.ts'
import { broadcast, type Sending, sendPayments } from './gasWallet.ts'
import { findReverted } from './revertedPayments.ts'
import { RpcTrouble } from './rpc.ts'
import type { ChainRefusal, Simulated } from './simulation.ts'
import { transferGas } from './transfer.ts'
import { highestGas, nextAccount, senderOf, tryTransfers } from './trial.ts'
import { examineUsed } from './usedAuthorization.ts'
import { holdUnproven, sortDeployments } from './walletsToDeploy.ts'

/** A payment that reverted this often is not sent again, though its simulation passes. */
const REVERTS_MAX = 3
const TROUBLE_DELAY_MS = 250
const TROUBLE_DELAY_MAX_MS = 5_000

/** Settles one batch of payments. Never throws for trouble of the chain or the RPC. */
export async function settlePayments(view: ChainView, ids: readonly string[]): Promise<void> {
  const found = await findPayments(view.pool, ids)
  const waiting = found.filter((payment) => payment.state === 'verified')
  if (waiting.length === 0) return
  if (!isKnown(view)) return postpone(view, waiting, 'the chain is not known yet')
  try {
    await settleOn(view, waiting)
  } catch (error) {
    if (!(error instanceof RpcTrouble)) throw error
    await postpone(view, waiting, error.message)
  }
}

async function settleOn(chain: KnownChain, waiting: readonly Payment[]): Promise<void> {
  const here = waiting.filter((payment) => payment.chainId === chain.network.chainId)
  const open = await findOpenTransactions(
    chain.pool,
    here.map((payment) => payment.id),
  )
  const sent = new Set(open.map((transaction) => transaction.paymentId))
  // The same bytes again can never pay twice.
  await broadcast(chain, open)
  const expired = here.filter((payment) => payment.validBefore < chain.head.timestamp)
  for (const payment of expired) {
    await orPostpone(chain, payment, () => settleExpired(chain, payment))
  }
  const reverted = await findReverted(chain, here)
  for (const [payment, end] of reverted) await orPostpone(chain, payment, end)
  const ended = new Set([...expired, ...reverted.keys()])
  const fresh = here.filter((payment) => !sent.has(payment.id) && !ended.has(payment))
  if (fresh.length === 0) return
  const { ready, held } = await sortDeployments(chain, fresh)
  if (held.length > 0) await postpone(chain, held, "the payer's wallet is being deployed")
  const account = nextAccount(chain, highestGas(ready))
  const trials = await tryTransfers(chain, ready, senderOf(chain, account))
  await sendPassing(
    chain,
    account,
    ready.flatMap((payment, n) => {
      const { outcome, gas, code } = trials[n]!
      return outcome.kind === 'passes' ? [{ payment, gas, code }] : []
    }),
  )
  for (const [n, payment] of ready.entries()) {
    const result = trials[n]!.outcome
    if (result.kind === 'trouble') await postpone(chain, [payment], result.detail)
    if (result.kind === 'refused') {
      await orPostpone(chain, payment, () => judgeRefusal(chain, payment, result.refusal))
    }
  }
}

/** Runs `work` for one payment. RPC trouble postpones this payment only. */
async function orPostpone(
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

async function sendPassing(
  chain: KnownChain,
  account: PrivateKeyAccount | null,
  passing: readonly Sending[],
): Promise<void> {
  if (passing.length === 0) return
  const sendable = passing.filter(({ payment }) => payment.revertCount < REVERTS_MAX)
  for (const { payment } of passing) {
    if (payment.revertCount < REVERTS_MAX) continue
    await fail(chain, payment, {
      kind: 'final',
      reason: 'invalid_transaction_state',
      detail: `reverted ${payment.revertCount} times`,
    })
  }
  if (account === null) {
    const trouble = 'the gas wallets are out of gas'
    chain.gasOutage.missed((fields, message) => chain.log.error(fields, message), trouble)
    return postpone(
      chain,
      sendable.map(({ payment }) => payment),
      trouble,
    )
  }
  chain.gasOutage.answered()
  const { free, held } = await holdUnproven(chain, sendable)
  if (held.length > 0) await postpone(chain, held, 'the first payment of this wallet is under way')
  if (free.length === 0) return
  chain.batches++
  await sendPayments(chain, account, free)
}

/**
 * A refusal fails a payment only when the highest block seen confirms it. A lagging node must not fail a payment, nor
 * must a balance that is just arriving.
 */
async function judgeRefusal(
  chain: KnownChain,
  payment: Payment,
  refusal: ChainRefusal,
): Promise<void> {
  if (refusal.kind === 'used') return examineUsed(chain, payment)
  if (refusal.kind === 'suspended') return fail(chain, payment, refusal)
  if (refusal.kind !== 'final') return postpone(chain, [payment], refusal.detail)
  const confirmed = await confirmRefusal(chain, payment, refusal)
  if (confirmed) await fail(chain, payment, refusal)
  else await postpone(chain, [payment], refusal.detail)
}

/**
 * Whether the highest block seen gives the same refusal. `early` confirms too, because only that block's time differs.
 * A wallet deployed meanwhile confirms nothing: its payment is simulated again without the deployment.
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

/** No later block can take the authorization: unless it was used, the payment fails. */
async function settleExpired(chain: KnownChain, payment: Payment): Promise<void> {
  if (await isUsed(chain.rpc, payment, chain.head.number)) return examineUsed(chain, payment)
  await fail(chain, payment, {
    kind: 'expired',
    reason: 'invalid_exact_evm_payload_authorization_valid_before',
    detail: 'expired before it could be settled',
  })
}

async function fail(chain: ChainView, payment: Payment, refusal: ChainRefusal): Promise<void> {
  await failPayment(chain.pool, {
    paymentId: payment.id,
    stage: payment.txHash === null ? 'verify' : 'settle',
    reason: refusal.reason,
    detail: refusal.detail,
  })
}

/** Postpones payments, with exponential back-off. */
async function postpone(
  view: ChainView,
  payments: readonly Payment[],
  trouble: string,
): Promise<void> {
  view.log.debug({ trouble, payments: payments.length }, 'payments have to wait')
  await postponePayments(
    view.pool,
    payments.map((payment) => ({
      paymentId: payment.id,
      trouble,
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
