/**
 * Follows on the chain the payments that purses (wallets of projects) have signed. The money of an unused payment
 * returns to its purse only after a proof that the payment can no longer be used. The proof is a final block with a
 * time after `validBefore`, and the unused nonce of the authorization in this block or a later one. Block times only
 * grow and a final block never changes, so no later block can accept the authorization. Neither the clock of this
 * service nor a statement of the seller proves this.
 */
import type { Hex } from 'viem'
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
  recordFinalSpent,
  recordReleased,
  recordUnspent,
  type Signed,
  type TransferPart,
} from '../../../sql/purse/watch.ts'
import type { BlockRef } from '../../../sql/till/settle/settlements.ts'
import {
  areUsed,
  type Block,
  compareBlocks,
  findInSameBlock,
  readBalances,
  readBlock,
} from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { eachStep } from './eachStep.ts'
import { type ClaimMemory, checkClaims } from './handRefunds.ts'
import { type SearchMemory, tendUsed } from './purseUses.ts'

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
 * Sets the number of consecutive polls after which a chain reorganisation counts as proven. Each of these polls must
 * find another block at the height of one of the newest transfers. One poll proves nothing, because another chain node
 * behind the same URL may lag behind.
 */
const REPLACED_LOOKS = 2

/** Holds the facts about purses (wallets of projects) that a process remembers between two polls. */
export type PurseMemory = ClaimMemory &
  SearchMemory & {
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
    /** Counts the consecutive polls in which another block was at the height of one of the newest transfers. */
    replacedLooks: number
  }

/**
 * Checks once the open payments of purses (wallets of projects) and the outdated balances of purses. A fault that
 * concerns the payment of one purse does not stop the checks of the other purses.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function tendPurses(chain: KnownChain, memory: PurseMemory): Promise<void> {
  const seen: { final: Block | null } = { final: null }
  await eachStep([
    async () => {
      seen.final = await readBlock(chain.rpc, 'finalized')
    },
    () => tendOpen(chain, memory, seen.final),
    async () => {
      if (seen.final !== null) await tendTransfers(chain, seen.final, { isFinal: true })
    },
    () => checkClaims(chain, memory),
    async () => {
      if (await isReplaced(chain, memory))
        await tendTransfers(chain, chain.head, { isFinal: false })
    },
    () => readPurses(chain),
  ])
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
  final: Block | null,
): Promise<void> {
  const open = await findNextOpen(chain.pool, chain.network.network, memory)
  const isOver = ({ transfer }: Signed) => final !== null && final.timestamp >= transfer.validBefore
  const used: Signed[] = []
  await eachStep([
    async () => {
      if (final !== null) used.push(...(await releaseUnused(chain, open.filter(isOver), final)))
    },
    async () => {
      const live = open.filter((one) => !isOver(one))
      used.push(...(await findUsed(chain, live)))
    },
    () => tendUsed(chain, memory, { used, final }),
  ])
}

/**
 * Releases the money of expired payments that are unused in the state of the newest block. A used nonce stays used, so
 * these payments are unused in the final block too. The service does not ask for the state of the final block itself,
 * because full chain nodes keep the state of only 128 blocks. The hash of the block excludes the state of an earlier
 * block, as a node that lags behind could send it.
 * @returns the payments that are used in this state.
 */
async function releaseUnused(
  chain: KnownChain,
  over: readonly Open[],
  final: Block,
): Promise<Open[]> {
  const { hash: blockHash } = final.number > chain.head.number ? final : chain.head
  const isUsed = await areUsed(
    chain.rpc,
    over.map(({ transfer }) => transfer),
    { blockHash },
  )
  for (const [n, { id }] of over.entries()) {
    if (!isUsed[n]) await recordReleased(chain.pool, id)
  }
  return over.filter((_, n) => isUsed[n])
}

/** Returns those payments whose authorizations are used or cancelled at the newest block. */
async function findUsed(chain: KnownChain, live: readonly Open[]): Promise<Open[]> {
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
  return live.filter((_, n) => atHead[n])
}

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
 * transfers that are not. If the chain node does not send the receipt of a transfer, the hash of the block decides. A
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
