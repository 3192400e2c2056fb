/**
 * Settles stored payments: simulates, signs, stores and broadcasts their transactions. Afterwards, the watcher (which
 * polls the chain) follows these transactions on the chain.
 */
import type { PrivateKeyAccount } from 'viem/accounts'
import { findPayments, type Payment } from '../../../sql/till/payments/payments.ts'
import { REORGANISATION_SECONDS } from '../../../sql/till/settle/settlementQueue.ts'
import { findOpenTransactions } from '../../../sql/till/watch/openTransactions.ts'
import { type ChainView, isKnown, type KnownChain } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { tryGroup } from '../trial/groupTrial.ts'
import { highestGas, nextAccount, senderOf, type Trial, tryTransfers } from '../trial/trial.ts'
import { holdUnproven, sortDeployments } from '../wallets/walletsToDeploy.ts'
import { findReverted } from '../watch/revertedPayments.ts'
import { broadcast, marketFees, type Sending, sendGroup, sendPayments } from './gasWallet.ts'
import { GROUP_MAX, groupGas } from './paymentGroup.ts'
import { fail, judgeRefusal, orPostpone, postpone, settleExpired } from './verdict.ts'

/**
 * Limits how often the transaction of a payment may revert. After this number of reverts, the service does not send the
 * payment again, even if its simulation succeeds.
 */
const REVERTS_MAX = 3
/**
 * Limits how many refused payments are checked again at once. If they were checked one by one, a group of refused
 * payments would occupy its settlement lane (queue) for seconds.
 */
const JUDGED_AT_ONCE = 8
/**
 * Limits how often a payment waits for another group if its simulation succeeds alone but fails in a group. After this
 * number of groups, the payment is sent in a separate transaction.
 */
const GROUP_REFUSALS_MAX = 6

/** Settles one batch of payments. An error of the chain or of the RPC node is handled and never thrown. */
export async function settlePayments(view: ChainView, ids: readonly string[]): Promise<void> {
  const found = await findPayments(view.pool, ids)
  const waiting = found
    .filter((payment) => payment.state === 'verified')
    .toSorted((a, b) => (a.row < b.row ? -1 : 1))
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
  const sent = new Set(open.flatMap((transaction) => transaction.paymentIds))
  // The transaction of an unsent payment is broadcast again, because sending the same signed bytes again can never pay
  // twice. The watcher (which polls the chain) later repeats the broadcast if the state of the transaction does not
  // change.
  await broadcast(
    chain,
    open.filter((transaction) => transaction.isUnsent),
  )
  const expired = here.filter(({ id, validBefore }) => {
    const graceS = sent.has(id) ? BigInt(REORGANISATION_SECONDS) : 0n
    return validBefore + graceS < chain.head.timestamp
  })
  const reverted = await findReverted(chain, here)
  const ended = new Set([...expired, ...reverted.keys()])
  const fresh = here.filter((payment) => !sent.has(payment.id) && !ended.has(payment))
  // The code first sends the payments that can be sent, and then ends the failed payments. A payer can make the end of
  // a failed payment slow, and must not delay the payments of others in this way.
  try {
    if (fresh.length > 0) await sendFresh(chain, fresh)
  } catch (error) {
    if (!(error instanceof RpcTrouble)) throw error
    await postpone(chain, fresh, error.message)
  }
  const ends = new Map([
    ...expired.map((payment) => [payment, () => settleExpired(chain, payment)] as const),
    ...reverted,
  ])
  await endEach(chain, [...ends])
}

/** Ends payments that can no longer be settled, several at once. */
async function endEach(
  chain: KnownChain,
  ends: readonly (readonly [Payment, () => Promise<void>])[],
): Promise<void> {
  for (let at = 0; at < ends.length; at += JUDGED_AT_ONCE) {
    const some = ends.slice(at, at + JUDGED_AT_ONCE)
    await Promise.all(some.map(([payment, end]) => orPostpone(chain, payment, end)))
  }
}

async function sendFresh(chain: KnownChain, fresh: readonly Payment[]): Promise<void> {
  const apart = fresh.filter((payment) => payment.goesAlone)
  const refused = new Set<Payment>()
  const groupable = fresh.filter((payment) => !payment.goesAlone)
  for (let at = 0; at < groupable.length; at += GROUP_MAX) {
    const rest = await sendTogether(chain, groupable.slice(at, at + GROUP_MAX))
    apart.push(...rest.apart, ...rest.refused)
    for (const payment of rest.refused) refused.add(payment)
  }
  if (apart.length > 0) await sendEach(chain, apart, refused)
}

/**
 * Simulates payments together, and sends one transaction with all payments that succeed in this simulation. @returns
 * the payments that were not sent.
 */
async function sendTogether(
  chain: KnownChain,
  payments: readonly Payment[],
): Promise<{ apart: readonly Payment[]; refused: readonly Payment[] }> {
  const account = payments.length < 2 ? null : nextAccount(chain, groupGas(payments.length))
  if (account === null) return { apart: payments, refused: [] }
  // The count of sent payment batches rises before the simulation, because two concurrent payment groups must not
  // choose the same gas wallet.
  chain.batches++
  const { members, apart, refused } = await tryGroup(chain, payments, senderOf(chain, account))
  if (members.length < 2) return { apart: [...members, ...apart], refused }
  await sendGroup(chain, account, members)
  return { apart, refused }
}

/**
 * Simulates each payment. Sends each payment in a separate transaction if the simulation of the payment succeeds.
 * @param refused lists payments that failed when they were simulated after the other payments of their group. Such a
 * failure counts, even if the payment succeeds when it is simulated alone, because the payer may not have enough money
 * for all its payments.
 */
async function sendEach(
  chain: KnownChain,
  payments: readonly Payment[],
  refused: ReadonlySet<Payment>,
): Promise<void> {
  const { ready, held } = await sortDeployments(chain, payments)
  if (held.length > 0) await postpone(chain, held, "the payer's wallet is being deployed")
  const account = nextAccount(chain, highestGas(ready))
  const trials = await tryTransfers(chain, ready, senderOf(chain, account))
  const passing = ready.flatMap((payment, n) => {
    const { outcome, gas, code } = trials[n]!
    return outcome.kind === 'passes' ? [{ payment, gas, code }] : []
  })
  const waits = ({ payment }: Sending) =>
    refused.has(payment) && payment.troubleCount < GROUP_REFUSALS_MAX
  await sendPassing(
    chain,
    account,
    passing.filter((sending) => !waits(sending)),
  )
  const later = passing.filter(waits).map(({ payment }) => payment)
  if (later.length > 0) await postpone(chain, later, 'it does not pass behind its group')
  const judge = async (payment: Payment, { outcome, code }: Trial) => {
    if (outcome.kind === 'trouble') await postpone(chain, [payment], outcome.detail)
    if (outcome.kind !== 'refused') return
    const isContract = code !== null
    await orPostpone(chain, payment, () =>
      judgeRefusal(chain, payment, outcome.refusal, { isContract }),
    )
  }
  for (let at = 0; at < ready.length; at += JUDGED_AT_ONCE) {
    const some = ready.slice(at, at + JUDGED_AT_ONCE)
    await Promise.all(some.map((payment, n) => judge(payment, trials[at + n]!)))
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
  const payable = affordable(chain, account, free)
  if (payable.length < free.length) {
    const unpaid = free.slice(payable.length).map(({ payment }) => payment)
    await postpone(chain, unpaid, 'the gas wallet has too little ether for all payments')
  }
  if (payable.length === 0) return
  chain.batches++
  await sendPayments(chain, account, payable)
}

/**
 * Returns as many of the first payments as the gas wallet can pay for together. A chain node refuses a transaction that
 * exceeds the balance of the wallet, and the payments of a refused transaction cannot move to another gas wallet.
 */
function affordable(
  chain: KnownChain,
  { address }: PrivateKeyAccount,
  sendings: readonly Sending[],
): readonly Sending[] {
  let leftWei = chain.balances.get(address.toLowerCase())
  if (leftWei === undefined) return sendings
  const { maxFeeWei } = marketFees(chain)
  for (const [n, { gas }] of sendings.entries()) {
    leftWei -= maxFeeWei * gas
    if (leftWei < 0n) return sendings.slice(0, n)
  }
  return sendings
}
