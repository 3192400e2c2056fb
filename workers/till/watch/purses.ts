/**
 * Follows on the chain the payments that purses (wallets of projects) have signed. The money of an unused payment
 * returns to its purse only after a proof that the payment can no longer be used. The proof is a final block with a
 * time after `validBefore` in which the nonce of the authorization is unused. Block times only grow and a final block
 * never changes, so no later block can accept the authorization. Neither the clock of this service nor a statement of
 * the seller proves this.
 */
import type { Address, Hex } from 'viem'
import type { Pool } from '../../../sql/db.ts'
import { findStaleBalances, recordBalances } from '../../../sql/purse/balances.ts'
import {
  checkAnew,
  findUnfinalRefunds,
  recordFinalRefunds,
} from '../../../sql/purse/refunds/handRefunds.ts'
import {
  findNewestOpen,
  findOpen,
  findSpent,
  findTransferBlocks,
  forgetCancels,
  type Open,
  recordCancelSeen,
  recordFinalSpent,
  recordReleased,
  recordSpent,
  recordUnspent,
  type Signed,
  type TransferPart,
} from '../../../sql/purse/watch.ts'
import type { BlockRef } from '../../../sql/till/settle/settlements.ts'
import {
  type AuthorizationEvent,
  areUsed,
  type Block,
  compareBlocks,
  findAuthorizationEvents,
  findInSameBlock,
  readBalances,
  readBlock,
} from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { refundReceipt } from '../chain/receipts.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { readTransfers, transferIndex } from '../chain/transfer.ts'
import { type ClaimMemory, checkClaims } from './handRefunds.ts'

/**
 * Limits the open payments that one poll reads. One half comes from the list of all open payments. The other half comes
 * from the newest payments of each project, because one project may have 20,000 open payments.
 */
const BATCH_MAX = 200
/** Sets how many of the newest blocks with transfers each poll compares with the chain. */
const BLOCKS_MAX = 10
/** Limits how many of the newest transfers a check after a reorganisation examines. */
const NEWEST_MAX = 1_000
const PURSES_MAX = 50
/**
 * Sets how many blocks before the signature of the payment the search for its transfer begins. The margin is needed,
 * because the stored block number may come from another chain node.
 */
const SEARCH_MARGIN = 5n
/**
 * Limits the blocks in which one poll searches for the transfers of old payments. After a restore of an old backup, a
 * search may cover months, and must not delay the other checks of a poll.
 */
const SEARCH_MAX = 20_000n
/**
 * Limits how many blocks before the signature of a payment the search for its transfer begins. The limit is a month on
 * Base.
 */
const BACK_MAX = 64n * SEARCH_MAX

/**
 * Sets the number of consecutive polls after which a chain reorganisation counts as proven. Each of these polls must
 * find another block at the height of one of the newest transfers. One poll proves nothing, because another chain node
 * behind the same URL may lag behind.
 */
const REPLACED_LOOKS = 2

/** Holds the facts about purses (wallets of projects) that a process remembers between two polls. */
export type PurseMemory = ClaimMemory & {
  /**
   * Holds the row number of the open payment at which the last poll ended. The number 0 means that the next poll begins
   * with the first open payment.
   */
  lastOpenRow: bigint
  /**
   * Holds the id of the project at which the last poll ended. The empty string means that the next poll begins with the
   * first project.
   */
  lastOpenProject: string
  /** Holds the block at which the search for the transfer of an old payment continues, by the id of the payment. */
  searchFrom: Map<string, bigint>
  /**
   * Holds the state of the search for a use before the signature, by the id of the payment: the block at which it
   * continues, and how many blocks before the signature it began.
   */
  searchedBack: Map<string, { from: bigint; back: bigint }>
  /** Counts the consecutive polls in which another block was at the height of one of the newest transfers. */
  replacedLooks: number
}

/**
 * Checks once the open payments of purses (wallets of projects) and the outdated balances of purses. @throws
 * {RpcTrouble} if the chain node does not respond.
 */
export async function tendPurses(chain: KnownChain, memory: PurseMemory): Promise<void> {
  const { network } = chain.network
  const open = await findNextOpen(chain.pool, network, memory)
  const final = await readBlock(chain.rpc, 'finalized')
  if (open.length > 0) await tendOpen(chain, memory, { open, final })
  if (final !== null) await tendTransfers(chain, final, { isFinal: true })
  await checkClaims(chain, memory)
  if (await isReplaced(chain, memory)) await tendTransfers(chain, chain.head, { isFinal: false })
  await readPurses(chain)
}

/** Finds the open payments that a poll checks, and remembers where the next poll continues. */
async function findNextOpen(pool: Pool, network: string, memory: PurseMemory): Promise<Open[]> {
  const limit = BATCH_MAX / 2
  const listed = await findOpen(pool, network, { after: memory.lastOpenRow, limit })
  memory.lastOpenRow = listed.length < limit ? 0n : listed.at(-1)!.row
  const newest = await findNewestOpen(pool, network, { after: memory.lastOpenProject, limit })
  memory.lastOpenProject = newest.lastProject
  const isListed = new Set(listed.map(({ row }) => row))
  return [...listed, ...newest.open.filter(({ row }) => !isListed.has(row))]
}

async function tendOpen(
  chain: KnownChain,
  memory: PurseMemory,
  { open, final }: { open: readonly Open[]; final: Block | null },
): Promise<void> {
  const isOver = ({ transfer }: Signed) => final !== null && final.timestamp >= transfer.validBefore
  const over = open.filter(isOver)
  const atFinal = await areUsed(
    chain.rpc,
    over.map(({ transfer }) => transfer),
    { blockHash: final?.hash ?? '0x' },
  )
  for (const [n, { id }] of over.entries()) {
    if (!atFinal[n]) await recordReleased(chain.pool, id)
  }
  const live = open.filter((one) => !isOver(one))
  const atHead = await areUsed(
    chain.rpc,
    live.map(({ transfer }) => transfer),
    chain.head.number,
  )
  // A reorganisation can remove from the chain a cancellation that an earlier poll has seen. The code then forgets this
  // cancellation, so that the service sends it again.
  const uncancelled = live.filter(({ isCancelSeen }, n) => isCancelSeen && !atHead[n])
  await forgetCancels(
    chain.pool,
    uncancelled.map(({ id }) => id),
  )
  const used = [...over.filter((_, n) => atFinal[n]), ...live.filter((_, n) => atHead[n])]
  if (used.length > 0) await tendUsed(chain, memory, { used, final })
}

/**
 * Handles payments with a used authorization: either a transfer used the authorization, or the payer cancelled the
 * authorization.
 */
async function tendUsed(
  chain: KnownChain,
  memory: PurseMemory,
  { used, final }: { used: readonly Signed[]; final: Block | null },
): Promise<void> {
  const events = await findUses(chain, memory, used)
  const byNonce = new Map(events.map((event) => [keyOf(event), event]))
  const found = used.flatMap((one) => {
    const event = byNonce.get(keyOf(one.transfer))
    return event === undefined ? [] : [{ one, event }]
  })
  const receipts = await readStrangersReceipts(
    chain.rpc,
    found.map(({ event }) => event.txHash),
  )
  for (const [n, { one, event }] of found.entries()) {
    const receipt = receipts[n]
    if (event.kind === 'canceled') {
      if (final !== null && event.blockNumber <= final.number) {
        await recordReleased(chain.pool, one.id)
      } else await recordCancelSeen(chain.pool, one.id)
      continue
    }
    if (receipt == null || receipt.status !== 1n) continue
    const index = transferIndex(readTransfers(receipt.logs, one.transfer.asset), one.transfer)
    if (index === null) {
      chain.log.error(
        { purchase: one.id },
        'an authorization of a purse is used without its transfer',
      )
      // After a restore of a backup, an unknown payment of the same order may have used the nonce. Then no later block
      // can settle this payment.
      if (final !== null && receipt.blockNumber <= final.number)
        await recordReleased(chain.pool, one.id)
      continue
    }
    const { transactionHash: txHash, blockNumber, blockHash } = receipt
    const seen = { txHash, logIndex: index, blockNumber, blockHash }
    await recordSpent(chain.pool, one.id, seen, (facts, hash) =>
      refundReceipt(facts, hash, chain.receiptKey),
    )
  }
}

/**
 * Finds the events of used authorizations. The search for old payments is separate from the search for new payments,
 * and continues at the next poll if it is not finished.
 */
async function findUses(
  chain: KnownChain,
  memory: PurseMemory,
  used: readonly Signed[],
): Promise<AuthorizationEvent[]> {
  const { searchFrom } = memory
  const { number: head } = chain.head
  const startOf = ({ id, signedBlock }: Signed): bigint =>
    searchFrom.get(id) ?? (signedBlock ?? 0n) - SEARCH_MARGIN
  const isOld = (one: Signed) => startOf(one) < head - SEARCH_MAX
  const events: AuthorizationEvent[] = []
  for (const some of [used.filter((one) => !isOld(one)), used.filter(isOld)]) {
    if (some.length === 0) continue
    const from = some.map(startOf).toSorted((left, right) => Number(left - right))[0]!
    const end = from + SEARCH_MAX
    const to = end < head ? end : head
    const found = await findAuthorizationEvents(
      chain.rpc,
      some.map(({ transfer }) => transfer),
      { from, to },
    )
    events.push(...found)
    const seen = new Set(found.map(keyOf))
    for (const one of some) {
      // When the search has reached the head, the next poll searches the same blocks again from the start, because the
      // node may have lacked a block.
      if (seen.has(keyOf(one.transfer)) || to === head) searchFrom.delete(one.id)
      else if (startOf(one) <= to) searchFrom.set(one.id, to + 1n)
    }
  }
  const found = new Set(events.map(keyOf))
  for (const one of used) if (found.has(keyOf(one.transfer))) memory.searchedBack.delete(one.id)
  const lost = used.filter((one) => !found.has(keyOf(one.transfer)) && !searchFrom.has(one.id))
  return [...events, ...(await findOlderUses(chain, memory, lost))]
}

/**
 * Searches the blocks before the signatures of payments for the events of their authorizations. After a restore of a
 * backup, the use of an authorization may be older than the signature that the service knows, because an order keeps
 * its nonce. Each poll searches one part, and each round begins twice as far back as the round before.
 */
async function findOlderUses(
  chain: KnownChain,
  { searchedBack }: PurseMemory,
  lost: readonly Signed[],
): Promise<AuthorizationEvent[]> {
  // The choice is random, so that a payment whose event no node knows does not delay the others for ever.
  const one = lost[Math.floor(Math.random() * lost.length)]
  if (one?.signedBlock == null) return []
  const { id, signedBlock, transfer } = one
  const { from, back } = searchedBack.get(id) ?? {
    from: signedBlock - SEARCH_MAX,
    back: SEARCH_MAX,
  }
  const end = from + SEARCH_MAX
  const to = end < signedBlock ? end : signedBlock
  try {
    const found = await findAuthorizationEvents(chain.rpc, [transfer], { from, to })
    if (found.length > 0 || back > BACK_MAX) searchedBack.delete(id)
    else if (to < signedBlock && to >= 0n) searchedBack.set(id, { from: to + 1n, back })
    else searchedBack.set(id, { from: signedBlock - 2n * back, back: 2n * back })
    return found
  } catch (error) {
    // A node may refuse to search old blocks. The other checks of the poll must go on.
    if (!(error instanceof RpcTrouble)) throw error
    searchedBack.delete(id)
    return []
  }
}

const keyOf = ({ payer, nonce }: { payer: Address; nonce: Hex }): string =>
  `${payer}:${nonce}`.toLowerCase()

/**
 * Tells whether a chain reorganisation replaced a block of the newest transfers. Comparing only the newest of these
 * blocks proves nothing, because it may belong to a transfer after the reorganisation.
 */
async function isReplaced(chain: KnownChain, memory: PurseMemory): Promise<boolean> {
  const spentIn = await findTransferBlocks(chain.pool, chain.network.network, BLOCKS_MAX)
  const compared = await compareBlocks(chain.rpc, spentIn)
  memory.replacedLooks = compared.isReplaced ? memory.replacedLooks + 1 : 0
  return memory.replacedLooks >= REPLACED_LOOKS
}

/**
 * Marks transfers of purses as final if they are in final blocks. If a chain reorganisation replaced the block of a
 * transfer, searches for the transfer again.
 */
async function tendTransfers(
  chain: KnownChain,
  { number: upTo }: Block,
  { isFinal }: { isFinal: boolean },
): Promise<void> {
  const { pool } = chain
  const part: TransferPart = isFinal
    ? { upTo, limit: BATCH_MAX, first: 'oldest' }
    : { upTo, limit: NEWEST_MAX, first: 'newest' }
  const { network } = chain.network
  const spent = await sortInPlace(chain, await findSpent(pool, network, part))
  if (isFinal) await recordFinalSpent(pool, spent.inPlace)
  for (const id of spent.replaced) await recordUnspent(pool, id)
  const refunds = await sortInPlace(chain, await findUnfinalRefunds(pool, network, part))
  if (isFinal) await recordFinalRefunds(pool, refunds.inPlace)
  await checkAnew(pool, refunds.replaced)
}

/**
 * Divides the transfers that an earlier poll found into two lists: transfers that are still in the same block, and
 * transfers that are not. If the node does not send the receipt of a transfer, the hash of the block decides. A
 * transfer that the node cannot prove either way is in neither list.
 */
async function sortInPlace(
  chain: KnownChain,
  seen: readonly (BlockRef & { id: string; txHash: Hex })[],
): Promise<{ inPlace: string[]; replaced: string[] }> {
  if (seen.length === 0) return { inPlace: [], replaced: [] }
  const receipts = await readStrangersReceipts(
    chain.rpc,
    seen.map(({ txHash }) => txHash),
  )
  const stillIn = await findInSameBlock(
    chain.rpc,
    seen.filter((_, n) => receipts[n] === undefined),
  )
  const isIn = (n: number) =>
    receipts[n]?.status === 1n && receipts[n].blockHash === seen[n]!.blockHash
  const idsOf = (isWanted: (n: number) => boolean) =>
    seen.filter((_, n) => isWanted(n)).map(({ id }) => id)
  return {
    inPlace: idsOf((n) => isIn(n) || stillIn.has(seen[n]!)),
    replaced: idsOf((n) => receipts[n] !== undefined && !isIn(n)),
  }
}

async function readPurses(chain: KnownChain): Promise<void> {
  const addresses = await findStaleBalances(chain.pool, PURSES_MAX)
  if (addresses.length === 0) return
  const { number } = chain.head
  const balances = await readBalances(chain.rpc, chain.network.usdcAddress, addresses, number)
  await recordBalances(
    chain.pool,
    number,
    addresses.map((address, n) => ({ address, balanceAtomic: balances[n]! })),
  )
}
