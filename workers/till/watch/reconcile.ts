/**
 * Handles lost payments, stuck transactions, chain reorganisations and finality. Several processes may run these checks
 * at once.
 */
import type { PrivateKeyAccount } from 'viem/accounts'
import { deleteStaleChecks } from '../../../sql/till/payments/paymentChecks.ts'
import { syncWallet } from '../../../sql/till/settle/gasWallets.ts'
import { findGaps, reopenTransactions } from '../../../sql/till/settle/nonceGaps.ts'
import {
  deleteEndedLonePayers,
  findIdlePayments,
  queueSettlement,
} from '../../../sql/till/settle/settlementQueue.ts'
import { deleteEndedSuspensions } from '../../../sql/till/settle/walletSuspensions.ts'
import { type Block, readWallets } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { fillGap } from '../settle/gasWallet.ts'
import { sendPurseCalls } from '../settle/sendPurseCalls.ts'
import { eachStep } from './eachStep.ts'
import { finalize, type ReorganisationMemory, watchForReorganisation } from './finality.ts'
import { type PurseMemory, tendPurses } from './purses.ts'
import { tendQuiet } from './quietTransactions.ts'

const BATCH_MAX = 200
/**
 * Sets after how many consecutive polls the service accepts a newest block that is lower than before, because a working
 * chain would have grown past its old height by then.
 */
const LOWER_LOOKS = 8
const CLEANING_LOOKS = 300

/** Holds the facts about the chain that this process remembers between two polls. */
export type Reconciler = ReorganisationMemory &
  PurseMemory & {
    gapsBefore: Set<string>
    lowerLooks: number
    looks: number
  }

/**
 * Returns the empty state with which a process begins to reconcile payments with the chain. The process has not watched
 * the chain until now, so it checks every settlement.
 */
export const newReconciler = (): Reconciler => ({
  lastNumber: null,
  suspicious: true,
  goneLooks: new Map(),
  lastOpenRow: 0n,
  lastOpenProject: '',
  lastClaimRow: 0n,
  replacedLooks: 0,
  searchFrom: new Map(),
  searchedBack: new Map(),
  gapsBefore: new Set(),
  lowerLooks: 0,
  looks: 0,
})

/**
 * Runs all checks of one poll of the chain: lost payments, open transactions, reorganisations and finality.
 * @param newest is the newest block of the responding chain node, which may be lower than `chain.head`.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function reconcile(
  chain: KnownChain,
  memory: Reconciler,
  newest: Block,
): Promise<void> {
  memory.lowerLooks = newest.number < chain.head.number ? memory.lowerLooks + 1 : 0
  if (memory.lowerLooks >= LOWER_LOOKS) chain.head = newest
  const { chainId } = chain.network
  const { lostMs } = chain.timing
  const idle = await findIdlePayments(chain.pool, {
    chainId,
    olderThanMs: lostMs,
    limit: BATCH_MAX,
  })
  for (const paymentId of idle) await queueSettlement(chain.pool, paymentId, null)
  await eachStep([
    () => watchForReorganisation(chain, memory, newest),
    () => finalize(chain, memory),
    () => tendWallets(chain, memory),
    () => tendPurses(chain, memory),
    () => sendPurseCalls(chain),
  ])
  if (memory.looks++ % CLEANING_LOOKS === 0) {
    await deleteStaleChecks(chain.pool)
    await deleteEndedSuspensions(chain.pool)
    await deleteEndedLonePayers(chain.pool)
  }
}

async function tendWallets(chain: KnownChain, memory: Reconciler): Promise<void> {
  const wallets = await readWallets(
    chain.rpc,
    chain.accounts.map((account) => account.address),
  )
  const gaps = new Set<string>()
  for (const [n, account] of chain.accounts.entries()) {
    const { used } = wallets[n]!
    const wallet = { chainId: chain.network.chainId, address: account.address }
    await syncWallet(chain.pool, wallet, used)
    await tendQuiet(chain, account, used)
    for (const nonce of await findGaps(chain.pool, wallet, used, BATCH_MAX)) {
      const key = `${account.address}:${nonce}`
      gaps.add(key)
      if (memory.gapsBefore.has(key)) await mendGap(chain, account, nonce)
    }
  }
  memory.gapsBefore = gaps
}

/**
 * Handles a chain reorganisation that removed the block in which a nonce was used, by reopening the transactions with
 * this nonce. If no stored transaction has this nonce, an empty transaction fills the gap.
 */
async function mendGap(
  chain: KnownChain,
  account: PrivateKeyAccount,
  nonce: bigint,
): Promise<void> {
  const wallet = { chainId: chain.network.chainId, address: account.address }
  const reopened = await reopenTransactions(chain.pool, wallet, nonce)
  chain.log.warn({ wallet: account.address, nonce: String(nonce), reopened }, 'a nonce was free')
  if (reopened === 0) await fillGap(chain, account, nonce)
}
