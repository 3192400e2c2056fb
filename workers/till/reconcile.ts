/** Reconciles lost payments, stuck transactions, reorganisations and finality. Safe in several processes at once. */
import type { PrivateKeyAccount } from 'viem/accounts'
import {
  findNewestSettlement,
  findUnfinalized,
  recordFinal,
  recordMoved,
  recordReorganised,
  type UnfinalizedPayment,
} from '../../sql/till/finality.ts'
import {
  findQuietTransactions,
  type OpenTransaction,
  syncWallet,
} from '../../sql/till/gasWallets.ts'
import { findIdlePayments } from '../../sql/till/idlePayments.ts'
import { findGaps, reopenTransactions } from '../../sql/till/nonceGaps.ts'
import { deleteStaleChecks } from '../../sql/till/paymentChecks.ts'
import { findPayment } from '../../sql/till/payments.ts'
import { queueSettlement } from '../../sql/till/settlements.ts'
import { deleteEndedSuspensions } from '../../sql/till/walletSuspensions.ts'
import { type Block, readBlock, readReceipts, readWallets } from './chain.ts'
import type { KnownChain } from './chainView.ts'
import { broadcast, fillGap, reprice } from './gasWallet.ts'
import { withoutNeedlessDeployment } from './walletsToDeploy.ts'

const BATCH_MAX = 200
/** A transaction is stuck after this many blocks without it. */
const STUCK_BLOCKS = 3n
/** Looks that must miss a settlement before it counts as undone: another node behind the same URL may just lag. */
const GONE_LOOKS = 2
/** Looks at a lower head before it is believed: by then a real chain has outgrown its old head. */
const LOWER_LOOKS = 8
const CLEANING_LOOKS = 300

/** The memory of one process between its looks. */
export type Reconciler = {
  /** The number of the newest block at the last look. */
  lastNumber: bigint | null
  /** Whether a reorganisation may have happened since every settlement was last found in its block. */
  suspicious: boolean
  goneLooks: Map<string, number>
  gapsBefore: Set<string>
  lowerLooks: number
  looks: number
}

/** The memory at the start. Nobody watched the chain until now, so every settlement is suspect. */
export const newReconciler = (): Reconciler => ({
  lastNumber: null,
  suspicious: true,
  goneLooks: new Map(),
  gapsBefore: new Set(),
  lowerLooks: 0,
  looks: 0,
})

/**
 * @param newest the node's newest block, which may be lower than `chain.head`.
 * @throws {RpcTrouble}
 */
export async function reconcile(
  chain: KnownChain,
  memory: Reconciler,
  newest: Block,
): Promise<void> {
  const { chainId } = chain.network
  const { lostMs } = chain.timing
  const idle = await findIdlePayments(chain.pool, {
    chainId,
    olderThanMs: lostMs,
    limit: BATCH_MAX,
  })
  for (const paymentId of idle) await queueSettlement(chain.pool, paymentId, null)
  memory.lowerLooks = newest.number < chain.head.number ? memory.lowerLooks + 1 : 0
  if (memory.lowerLooks >= LOWER_LOOKS) chain.head = newest
  await watchForReorganisation(chain, memory, newest)
  await finalize(chain, memory)
  await tendWallets(chain, memory)
  if (memory.looks++ % CLEANING_LOOKS === 0) {
    await deleteStaleChecks(chain.pool)
    await deleteEndedSuspensions(chain.pool)
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

/** Reopens transactions that a reorganisation threw out; fills the nonce when there is none. */
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

/** Rebroadcasts silent transactions; raises the fee of stuck ones. */
async function tendQuiet(
  chain: KnownChain,
  account: PrivateKeyAccount,
  used: bigint,
): Promise<void> {
  const wallet = { chainId: chain.network.chainId, address: account.address }
  const { quietMs } = chain.timing
  const found = await findQuietTransactions(chain.pool, wallet, { quietMs, limit: BATCH_MAX })
  const quiet = highestFeePerNonce(found.filter(({ nonce }) => nonce >= used))
  const errors = await broadcast(chain, quiet)
  for (const stuck of quiet) {
    const refusedForFee = isFeeError(errors.get(stuck.hash) ?? null)
    const passedBy = stuck.sentHead !== null && chain.head.number - stuck.sentHead >= STUCK_BLOCKS
    if (!refusedForFee && !(passedBy && stuck.sendCount > 1)) continue
    const stored = stuck.paymentId === null ? null : await findPayment(chain.pool, stuck.paymentId)
    const payment = stored === null ? null : await withoutNeedlessDeployment(chain, stored)
    const raised = await reprice(chain, account, { stuck, payment })
    chain.log.warn({ hash: stuck.hash, raised }, 'a transaction is stuck')
  }
}

const isFeeError = (error: string | null): boolean =>
  error !== null && /underpriced|fee|too low to/i.test(error) && !/nonce/i.test(error)

/** The transaction with the highest fee for each nonce. */
function highestFeePerNonce(transactions: readonly OpenTransaction[]): OpenTransaction[] {
  const best = new Map<bigint, OpenTransaction>()
  for (const one of transactions) {
    const rival = best.get(one.nonce)
    if (rival === undefined || rival.maxFeeWei < one.maxFeeWei) best.set(one.nonce, one)
  }
  return [...best.values()]
}

/** Checks every unfinalized payment once the newest settlement is missing from its block. */
async function watchForReorganisation(
  chain: KnownChain,
  memory: Reconciler,
  newest: Block,
): Promise<void> {
  const isShorter = memory.lastNumber !== null && newest.number < memory.lastNumber
  if (!memory.suspicious) memory.suspicious = await isReplaced(chain, isShorter)
  memory.lastNumber = newest.number
  if (!memory.suspicious) return
  const unfinalized = await findUnfinalized(chain.pool, chain.network.chainId, BATCH_MAX * 10)
  const found = await readReceipts(
    chain.rpc,
    unfinalized.map((one) => one.txHash),
  )
  const moved: UnfinalizedPayment[] = []
  const gone: UnfinalizedPayment[] = []
  for (const [n, payment] of unfinalized.entries()) {
    const receipt = found[n]
    if (receipt == null || receipt.status !== 1n) {
      gone.push(payment)
    } else if (receipt.blockHash !== payment.blockHash) {
      const { blockNumber, blockHash } = receipt
      moved.push({ ...payment, blockNumber, blockHash })
    }
  }
  await recordMoved(chain.pool, moved)
  const undone = gone.filter(({ paymentId }) => {
    const looks = (memory.goneLooks.get(paymentId) ?? 0) + 1
    memory.goneLooks.set(paymentId, looks)
    return looks >= GONE_LOOKS
  })
  if (undone.length > 0) {
    chain.log.error({ payments: undone.length }, 'a reorganisation undid settlements')
    await recordReorganised(chain.pool, undone)
    chain.head = newest
  }
  memory.suspicious = gone.length > undone.length
  if (!memory.suspicious) memory.goneLooks.clear()
}

/**
 * Whether the block of the newest settlement was replaced; earlier blocks may be replaced too. The parent of the newest
 * block does not tell: a settlement can stand in a block between two looks.
 * @param isShorter whether the head is lower than at the last look: a lost block, or a lagging node.
 */
async function isReplaced(chain: KnownChain, isShorter: boolean): Promise<boolean> {
  const settlement = await findNewestSettlement(chain.pool, chain.network.chainId)
  if (settlement === null) return false
  const block = await readBlock(chain.rpc, settlement.blockNumber)
  return block === null ? isShorter : block.hash !== settlement.blockHash
}

/** A payment in a finalized block is final. A replaced block makes all payments suspect. */
async function finalize(chain: KnownChain, memory: Reconciler): Promise<void> {
  const oldest = await findUnfinalized(chain.pool, chain.network.chainId, BATCH_MAX)
  if (oldest.length === 0) return
  const final = await readBlock(chain.rpc, 'finalized')
  const due = oldest.filter((one) => final !== null && one.blockNumber <= final.number)
  if (due.length === 0) return
  const receipts = await readReceipts(
    chain.rpc,
    due.map((one) => one.txHash),
  )
  const inPlace = due.filter(
    (one, n) => receipts[n]?.status === 1n && receipts[n].blockHash === one.blockHash,
  )
  if (inPlace.length < due.length) memory.suspicious = true
  await recordFinal(
    chain.pool,
    inPlace.map((one) => one.paymentId),
  )
}
