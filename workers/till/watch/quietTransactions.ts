/** Handles transactions that are not in a block, by sending these transactions again and by raising their fee. */
import type { PrivateKeyAccount } from 'viem/accounts'
import { findPayments, type Payment } from '../../../sql/till/payments/payments.ts'
import type { WalletId } from '../../../sql/till/settle/gasWallets.ts'
import {
  findQuietTransactions,
  findSentOnce,
  type OpenTransaction,
} from '../../../sql/till/watch/openTransactions.ts'
import { readCode } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { broadcast, canRaise, isWaiting, reprice } from '../settle/gasWallet.ts'
import { withoutNeedlessDeployment } from '../wallets/walletsToDeploy.ts'

const BATCH_MAX = 200
/** Sets after how many consecutive blocks without the transaction a transaction counts as stuck. */
const STUCK_BLOCKS = 3n
/**
 * Sets how many milliseconds a chain node may need until its next nonce of the wallet counts a transaction that the
 * node has accepted.
 */
const POOL_MS = 500

/**
 * Broadcasts a transaction again if its state has not changed for some time. Raises the fee of stuck transactions by
 * replacing these transactions.
 */
export async function tendQuiet(
  chain: KnownChain,
  account: PrivateKeyAccount,
  used: bigint,
): Promise<void> {
  const wallet = { chainId: chain.network.chainId, address: account.address }
  const { quietMs } = chain.timing
  const found = await findQuietTransactions(chain.pool, wallet, { quietMs, limit: BATCH_MAX })
  const quiet = highestFeePerNonce(found.filter(({ nonce }) => nonce >= used))
  const failed = await findFailed(chain, quiet)
  const errors = await broadcast(
    chain,
    quiet.filter((one) => !failed.has(one)),
  )
  let isPoor = false
  for (const stuck of quiet) {
    if (failed.has(stuck)) {
      // If the fee cannot rise, only the transaction itself can use its nonce, for which later nonces wait. Therefore
      // the same transaction is sent again.
      if (canRaise(chain, stuck)) await reprice(chain, account, { stuck, payments: [] })
      else await broadcast(chain, [stuck])
      continue
    }
    const error = errors.get(stuck.hash) ?? null
    if (!isPoor && isFundsError(error)) {
      isPoor = true
      chain.log.warn({ wallet: account.address, error }, 'a gas wallet has too little ether')
    }
    const refusedForFee = isFeeError(error)
    const passedBy = stuck.sentHead !== null && chain.head.number - stuck.sentHead >= STUCK_BLOCKS
    if (!refusedForFee && !(passedBy && stuck.sendCount > 1)) continue
    const stored = await findPayments(chain.pool, stuck.paymentIds)
    const payments =
      stuck.paymentIds.length > 1
        ? await withoutCode(chain, stored)
        : await Promise.all(stored.map((payment) => withoutNeedlessDeployment(chain, payment)))
    // If a gas wallet has too little ether for a transaction, the code does not raise the fee. The exception is a
    // transaction whose payments no longer wait, because its replacement is an empty transfer, which costs less.
    const isCheaper = stuck.paymentIds.length > 0 && !payments.some(isWaiting)
    if (isPoor && !isCheaper) continue
    const raised = await reprice(chain, account, { stuck, payments })
    chain.log.warn({ hash: stuck.hash, raised }, 'a transaction is stuck')
  }
}

/**
 * Broadcasts a transaction again if the chain node has dropped it from its pool, because all later nonces of the wallet
 * wait for this transaction. Each dropped transaction is sent again only once, because a chain node may accept a
 * transaction without counting its nonce.
 * @param pooled is the next nonce of the wallet after the transactions that wait in the node's pool.
 */
export async function resendDropped(
  chain: KnownChain,
  wallet: WalletId,
  pooled: bigint,
): Promise<void> {
  const dropped = await findSentOnce(chain.pool, wallet, { nonce: pooled, quietMs: POOL_MS })
  if (dropped === null || (await findFailed(chain, [dropped])).has(dropped)) return
  chain.log.info({ hash: dropped.hash }, 'the pool of the node has dropped a transaction')
  await broadcast(chain, [dropped])
}

/**
 * Returns those payments of a group whose payers still have no contract code. The payments of the other payers are sent
 * in separate transactions as soon as the nonce of the group transaction is used.
 */
async function withoutCode(chain: KnownChain, members: readonly Payment[]): Promise<Payment[]> {
  const codes = await readCode(
    chain.rpc,
    members.map(({ payer }) => payer),
    chain.head.number,
  )
  return members.filter((_, n) => codes[n] === '0x')
}

/**
 * Returns those transactions whose payments have all failed. An empty transfer must replace such a transaction at once,
 * because after a reorganisation the transaction could otherwise take the money of a failed payment.
 */
async function findFailed(
  chain: KnownChain,
  transactions: readonly OpenTransaction[],
): Promise<Set<OpenTransaction>> {
  const stored = await findPayments(
    chain.pool,
    transactions.flatMap(({ paymentIds }) => paymentIds),
  )
  const failed = new Set(stored.filter(({ state }) => state === 'failed').map(({ id }) => id))
  return new Set(
    transactions.filter(
      ({ paymentIds }) => paymentIds.length > 0 && paymentIds.every((id) => failed.has(id)),
    ),
  )
}

const isFeeError = (error: string | null): boolean =>
  error !== null && /underpriced|fee|too low to/i.test(error) && !/nonce/i.test(error)

/**
 * Tells whether a chain node refuses a transaction because the gas wallet has too little ether. Until the node accepts
 * it, each transaction of the wallet with a later nonce waits.
 */
const isFundsError = (error: string | null): boolean => /insufficient ?funds/i.test(error ?? '')

/** Returns for each nonce the transaction with the highest fee. */
function highestFeePerNonce(transactions: readonly OpenTransaction[]): OpenTransaction[] {
  const best = new Map<bigint, OpenTransaction>()
  for (const one of transactions) {
    const rival = best.get(one.nonce)
    if (rival === undefined || rival.maxFeeWei < one.maxFeeWei) best.set(one.nonce, one)
  }
  return [...best.values()]
}
