/** Finds and records how the authorizations of purses were used. */
import type { Address, Hex } from 'viem'
import {
  recordCancelSeen,
  recordReleased,
  recordSpent,
  type Signed,
} from '../../../sql/purse/watch.ts'
import { type AuthorizationEvent, type Block, findAuthorizationEvents } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { refundReceipt } from '../chain/receipts.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { type Receipt, readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { readTransfers, transferIndex } from '../chain/transfer.ts'
import { readTransferProof } from '../chain/transferProof.ts'
import { eachStep } from './eachStep.ts'

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

/** Holds the blocks at which the searches for the uses of payment authorizations continue. */
export type SearchMemory = {
  /** Holds the block at which the search for the transfer of an old payment continues, by the id of the payment. */
  searchFrom: Map<string, bigint>
  /**
   * Holds the state of the search for a use before the signature, by the id of the payment: the block at which it
   * continues, and how many blocks before the signature it began.
   */
  searchedBack: Map<string, { from: bigint; back: bigint }>
}

/**
 * Handles payments with a used authorization: either a transfer used the authorization, or the payer cancelled the
 * authorization. The search for old payments is a separate step, because a chain node may refuse to search old blocks.
 */
export async function tendUsed(
  chain: KnownChain,
  memory: SearchMemory,
  { used, final }: { used: readonly Signed[]; final: Block | null },
): Promise<void> {
  const found = new Set<string>()
  const isOld = (one: Signed) => startOf(memory, one) < chain.head.number - SEARCH_MAX
  const record = async (events: readonly AuthorizationEvent[]) => {
    for (const event of events) found.add(keyOf(event))
    for (const one of used) if (found.has(keyOf(one.transfer))) memory.searchedBack.delete(one.id)
    await recordUses(chain, { used, events, final })
  }
  const [fresh, old] = [used.filter((one) => !isOld(one)), used.filter(isOld)]
  await eachStep([
    async () => record(await findUses(chain, memory, fresh)),
    async () => record(await findUses(chain, memory, old)),
    async () => {
      const isLost = (one: Signed) =>
        !found.has(keyOf(one.transfer)) && !memory.searchFrom.has(one.id)
      await record(await findOlderUses(chain, memory, used.filter(isLost)))
    },
  ])
}

/** Records the payments whose authorizations were used or cancelled, as the given events of the token contract show. */
async function recordUses(
  chain: KnownChain,
  {
    used,
    events,
    final,
  }: { used: readonly Signed[]; events: readonly AuthorizationEvent[]; final: Block | null },
): Promise<void> {
  const byNonce = new Map(events.map((event) => [keyOf(event), event]))
  const found = used.flatMap((one) => {
    const event = byNonce.get(keyOf(one.transfer))
    return event === undefined ? [] : [{ one, event }]
  })
  const receipts = await readStrangersReceipts(
    chain.rpc,
    found.map(({ event }) => event.txHash),
  )
  await eachStep(
    found.map(
      ({ one, event }, n) =>
        () =>
          recordUse(chain, { one, event, receipt: receipts[n], final }),
    ),
  )
}

/** Records one payment whose authorization was used or cancelled, as the given event of the token contract shows. */
async function recordUse(
  chain: KnownChain,
  {
    one,
    event,
    receipt,
    final,
  }: {
    one: Signed
    event: AuthorizationEvent
    receipt: Receipt | null | undefined
    final: Block | null
  },
): Promise<void> {
  if (event.kind === 'canceled') {
    if (final === null || event.blockNumber > final.number) {
      return recordCancelSeen(chain.pool, one.id)
    }
    return recordReleased(chain.pool, one.id)
  }
  if (receipt === null || (receipt !== undefined && receipt.status !== 1n)) return
  const { asset } = one.transfer
  const proof = receipt ?? (await readTransferProof(chain.rpc, event, asset))
  const { transactionHash: txHash, blockNumber, blockHash } = proof
  const logIndex = transferIndex(readTransfers(proof.logs, asset), one.transfer)
  if (logIndex === null) {
    chain.log.error(
      { purchase: one.id },
      'an authorization of a purse is used without its transfer',
    )
    // After a restore of a backup, an unknown payment of the same order may have used the nonce. Then no later block
    // can settle this payment.
    if (receipt !== undefined && final !== null && blockNumber <= final.number) {
      await recordReleased(chain.pool, one.id)
    }
    return
  }
  await recordSpent(
    chain.pool,
    one.id,
    { txHash, logIndex, blockNumber, blockHash },
    (facts, hash) => refundReceipt(facts, hash, chain.receiptKey),
  )
}

/** Returns the block at which the search for the transfer of a payment continues. */
const startOf = ({ searchFrom }: SearchMemory, { id, signedBlock }: Signed): bigint =>
  searchFrom.get(id) ?? (signedBlock ?? 0n) - SEARCH_MARGIN

/**
 * Finds the events of used authorizations in the next blocks of the search. If a search is not finished, the next poll
 * continues it.
 */
async function findUses(
  chain: KnownChain,
  memory: SearchMemory,
  used: readonly Signed[],
): Promise<AuthorizationEvent[]> {
  if (used.length === 0) return []
  const { searchFrom } = memory
  const { number: head } = chain.head
  const starts = used.map((one) => startOf(memory, one))
  const from = starts.toSorted((left, right) => Number(left - right))[0]!
  const end = from + SEARCH_MAX
  const to = end < head ? end : head
  const events = await findAuthorizationEvents(
    chain.rpc,
    used.map(({ transfer }) => transfer),
    { from, to },
  )
  const seen = new Set(events.map(keyOf))
  for (const [n, one] of used.entries()) {
    // When the search has reached the newest block, the next poll searches the same blocks again from the start,
    // because the chain node may have lacked a block.
    if (seen.has(keyOf(one.transfer)) || to === head) searchFrom.delete(one.id)
    else if (starts[n]! <= to) searchFrom.set(one.id, to + 1n)
  }
  return events
}

/**
 * Searches the blocks before the signatures of payments for the events of their authorizations. After a restore of a
 * backup, the use of an authorization may be older than the signature that the service knows, because an order keeps
 * its nonce. Each poll searches one part, and each round begins twice as far back as the round before.
 */
async function findOlderUses(
  chain: KnownChain,
  { searchedBack }: SearchMemory,
  lost: readonly Signed[],
): Promise<AuthorizationEvent[]> {
  // The code searches for one randomly chosen payment, so that a payment whose event no node knows does not delay the
  // others for ever.
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
    // A chain node may refuse to search old blocks. The other checks of the poll must go on.
    if (!(error instanceof RpcTrouble)) throw error
    searchedBack.delete(id)
    return []
  }
}

const keyOf = ({ payer, nonce }: { payer: Address; nonce: Hex }): string =>
  `${payer}:${nonce}`.toLowerCase()
