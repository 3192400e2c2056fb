/** Finds settlements that a chain reorganisation moved or undid, and settlements whose blocks have become final. */
import {
  findSettlementBlocks,
  findUnfinalized,
  type MovedPayment,
  recordFinal,
  recordMoved,
  recordReorganised,
  type UnfinalizedPayment,
} from '../../../sql/till/watch/finality.ts'
import { type Block, compareBlocks, findInSameBlock, readBlock } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { type Receipt, readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { readTransfers, type Transfers, transferIndex } from '../chain/transfer.ts'

const BATCH_MAX = 200
/**
 * Limits how many batches of settlements one poll marks as final. With only one batch in each poll, the service would
 * mark a hundred settlements a second, but it can settle more.
 */
const BATCHES_MAX = 10
/** Limits how many payments a check for a reorganisation reads from the database at once. */
const PART_MAX = 2_000
/** Sets how many of the newest blocks with settlements each poll compares with the chain. */
const BLOCKS_MAX = 10
/**
 * Sets the number of consecutive polls without a receipt after which the settlement of a transaction counts as undone.
 * One poll without a receipt proves nothing, because another chain node behind the same URL may lag behind.
 */
const GONE_LOOKS = 2

/** Holds the facts about chain reorganisations that a process remembers between two polls. */
export type ReorganisationMemory = {
  /** Holds the number of the chain's newest block that the last poll found. */
  lastNumber: bigint | null
  /**
   * Tells whether a chain reorganisation may have happened since the settlements were last checked. A check that finds
   * every settlement in its block clears this flag.
   */
  suspicious: boolean
  goneLooks: Map<string, number>
}

/**
 * Checks all payments that are not final, as soon as a chain reorganisation has replaced a block of the newest
 * settlements.
 */
export async function watchForReorganisation(
  chain: KnownChain,
  memory: ReorganisationMemory,
  newest: Block,
): Promise<void> {
  const isShorter = memory.lastNumber !== null && newest.number < memory.lastNumber
  if (!memory.suspicious) memory.suspicious = await wasReorganised(chain, isShorter)
  memory.lastNumber = newest.number
  if (!memory.suspicious) return
  const { gone, isUnclear } = await examineAll(chain)
  // If the transaction of a payment is found again, the count of polls without it returns to zero, because only
  // consecutive polls prove that the transaction is lost.
  memory.goneLooks = new Map(
    gone.map(({ paymentId }) => [paymentId, (memory.goneLooks.get(paymentId) ?? 0) + 1]),
  )
  const undone = gone.filter(({ paymentId }) => memory.goneLooks.get(paymentId)! >= GONE_LOOKS)
  if (undone.length > 0) {
    chain.log.error({ payments: undone.length }, 'a reorganisation undid settlements')
    await recordReorganised(chain.pool, undone)
    chain.head = newest
  }
  memory.suspicious = isUnclear || gone.length > undone.length
  if (!memory.suspicious) memory.goneLooks.clear()
}

/**
 * Searches, part by part, for the transactions of all settled payments that are not final, and records the new blocks
 * of moved transactions.
 * @returns the payments that are in no block any more. If `isUnclear` is true, the chain node does not tell whether
 *   another payment is still in a block.
 */
async function examineAll(
  chain: KnownChain,
): Promise<{ gone: UnfinalizedPayment[]; isUnclear: boolean }> {
  const { chainId } = chain.network
  const allGone: UnfinalizedPayment[] = []
  let isUnclear = false
  let last: UnfinalizedPayment | null = null
  for (;;) {
    const part: UnfinalizedPayment[] = await findUnfinalized(chain.pool, chainId, PART_MAX, last)
    const receipts = await readStrangersReceipts(
      chain.rpc,
      part.map((one) => one.txHash),
    )
    const { moved, gone } = sortFound(part, receipts)
    await recordMoved(chain.pool, moved)
    allGone.push(...gone)
    const unread = part.filter((_, n) => receipts[n] === undefined)
    isUnclear ||= (await findInSameBlock(chain.rpc, unread)).size < unread.length
    last = part.at(-1) ?? null
    if (part.length < PART_MAX) return { gone: allGone, isUnclear }
  }
}

/**
 * Divides settled payments that lost their block in a chain reorganisation into two lists: payments in another block,
 * and payments in no block any more. A payment whose receipt the chain node does not send is in neither list. A group
 * transaction can be in a block although the transfer of one payment is missing.
 */
function sortFound(
  unfinalized: readonly UnfinalizedPayment[],
  receipts: readonly (Receipt | null | undefined)[],
): { moved: MovedPayment[]; gone: UnfinalizedPayment[] } {
  const moved: MovedPayment[] = []
  const gone: UnfinalizedPayment[] = []
  const transfersOf = new Map<Receipt, Transfers>()
  for (const [n, payment] of unfinalized.entries()) {
    const receipt = receipts[n]
    if (receipt === undefined) continue
    if (receipt?.blockHash === payment.blockHash && receipt.status === 1n) continue
    if (receipt === null || receipt.status !== 1n) {
      gone.push(payment)
      continue
    }
    const transfers =
      transfersOf.get(receipt) ?? readTransfers(receipt.logs, payment.transfer.asset)
    transfersOf.set(receipt, transfers)
    const logIndex = transferIndex(transfers, payment.transfer)
    const { blockNumber, blockHash } = receipt
    if (logIndex === null) gone.push(payment)
    else moved.push({ ...payment, blockNumber, blockHash, logIndex })
  }
  return { moved, gone }
}

/**
 * Tells whether a chain reorganisation replaced a block of the newest settlements. The function compares several
 * blocks, because the newest one may belong to a settlement after the reorganisation. A comparison with its parent
 * alone is not enough, because several blocks can pass between two polls.
 * @param isShorter tells whether the newest block of the chain is lower than at the last poll. In this case, either the
 * chain has lost a block, or a chain node lags behind.
 */
async function wasReorganised(chain: KnownChain, isShorter: boolean): Promise<boolean> {
  const settledIn = await findSettlementBlocks(chain.pool, chain.network.chainId, BLOCKS_MAX)
  if (settledIn.length === 0) return false
  const { blocks, isReplaced } = await compareBlocks(chain.rpc, settledIn)
  return isReplaced || (blocks[0] === null && isShorter)
}

/**
 * Marks payments in finalized blocks as final. If a chain reorganisation replaced a finalized block, the next check
 * examines all payments.
 */
export async function finalize(chain: KnownChain, memory: ReorganisationMemory): Promise<void> {
  let final: Block | null | undefined
  let last: UnfinalizedPayment | null = null
  for (let batches = 0; batches < BATCHES_MAX; batches++) {
    const { chainId } = chain.network
    const oldest: UnfinalizedPayment[] = await findUnfinalized(chain.pool, chainId, BATCH_MAX, last)
    if (oldest.length === 0) return
    final ??= await readBlock(chain.rpc, 'finalized')
    if (final === null) return
    const { number } = final
    const due = oldest.filter(({ blockNumber }) => blockNumber <= number)
    await finalizeDue(chain, memory, due)
    if (due.length < BATCH_MAX) return
    last = due.at(-1)!
  }
}

async function finalizeDue(
  chain: KnownChain,
  memory: ReorganisationMemory,
  due: readonly UnfinalizedPayment[],
): Promise<void> {
  if (due.length === 0) return
  const receipts = await readStrangersReceipts(
    chain.rpc,
    due.map((one) => one.txHash),
  )
  const stillIn = await findInSameBlock(
    chain.rpc,
    due.filter((_, n) => receipts[n] === undefined),
  )
  const inPlace = due.filter(
    (one, n) =>
      stillIn.has(one) || (receipts[n]?.status === 1n && receipts[n].blockHash === one.blockHash),
  )
  if (inPlace.length < due.length) memory.suspicious = true
  await recordFinal(
    chain.pool,
    inPlace.map((one) => one.paymentId),
  )
}
