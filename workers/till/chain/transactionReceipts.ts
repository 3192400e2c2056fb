/** Reads the receipts of transactions from a chain node. */

import { LRUCache } from 'lru-cache'
import type { Hex } from 'viem'
import { z } from 'zod'
import { hex, quantity, read } from './chain.ts'
import { type Rpc, type RpcAnswer, RpcTimeout, RpcTrouble } from './rpc.ts'

export const logSchema = z.object({
  address: hex,
  topics: z.array(hex),
  data: hex,
  logIndex: quantity,
})

const receiptSchema = z.object({
  transactionHash: hex,
  status: quantity,
  blockNumber: quantity,
  blockHash: hex,
  gasUsed: quantity,
  effectiveGasPrice: quantity.optional(),
  // Only Base reports `l1Fee`, which is the cost of storing the data of a transaction on Ethereum. On other chains, the
  // field is absent.
  l1Fee: quantity.nullish(),
  logs: z.array(logSchema),
})

export type Receipt = z.output<typeof receiptSchema>

/** Returns the cost of a transaction in wei. Returns `null` if the chain node does not state the cost. */
export const feeOf = ({ gasUsed, effectiveGasPrice, l1Fee }: Receipt): bigint | null =>
  effectiveGasPrice === undefined ? null : gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/**
 * Limits how many receipts of other senders' transactions one request reads, because each of these transactions can
 * have two megabytes of logs.
 */
const STRANGERS_AT_ONCE = 25

/**
 * Holds the receipts that the chain node has recently sent too slowly. For some minutes, the service does not ask for
 * them again. Otherwise each poll of the chain would wait for them, and settle nothing meanwhile.
 */
const slow = new LRUCache<Hex, true>({ max: 10_000, ttl: 10 * 60_000 })

/**
 * Limits how many milliseconds one read waits for receipts of other senders' transactions that the chain node sends
 * slowly. The read then leaves out the receipts that it has not read yet.
 */
const SLOW_MS = 8_000

/**
 * Returns the transaction receipts in the order of `hashes`, with `null` for a hash without a receipt. Reads each
 * transaction receipt only once.
 */
export async function readReceipts(rpc: Rpc, hashes: readonly Hex[]): Promise<(Receipt | null)[]> {
  const receipts = await readEach(rpc, hashes, {
    atOnce: Number.POSITIVE_INFINITY,
    areStrangers: false,
  })
  return receipts.map((receipt) => {
    if (receipt instanceof RpcTrouble) throw receipt
    return receipt
  })
}

/**
 * Returns the receipts of transactions that anybody may have sent, in the order of `hashes`. Returns `undefined` for a
 * receipt that the chain node has but cannot send, because the receipt is too large or takes too long.
 */
export async function readStrangersReceipts(
  rpc: Rpc,
  hashes: readonly Hex[],
): Promise<(Receipt | null | undefined)[]> {
  const receipts = await readEach(rpc, hashes, { atOnce: STRANGERS_AT_ONCE, areStrangers: true })
  return receipts.map((receipt) => (receipt instanceof RpcTrouble ? undefined : receipt))
}

/**
 * Matches the errors of a chain node that limits the rate of requests, because the service must not send a new request
 * to such a node at once.
 */
const LIMITED = /\b429\b|\brate\b|quota|too many requests|capacity/i
const LIMITED_CODES = [429, -32005]

/**
 * Reads receipts. If the chain node leaves out some receipts, or takes too long, the function reads these receipts
 * again in smaller requests. Otherwise it would never read receipts that are too large for one response together. A
 * receipt that the node does not send even in a request of its own causes an error for this receipt only.
 */
async function readEach(
  rpc: Rpc,
  hashes: readonly Hex[],
  { atOnce, areStrangers }: { atOnce: number; areStrangers: boolean },
): Promise<(Receipt | null | RpcTrouble)[]> {
  const startMs = performance.now()
  const found = new Map<Hex, Receipt | null | RpcTrouble>()
  const isSlow = (hash: Hex) => areStrangers && slow.has(hash)
  let pending = [...new Set(hashes)].filter((hash) => !isSlow(hash))
  let size = Math.min(atOnce, pending.length)
  while (pending.length > 0) {
    const some = pending.slice(0, size)
    const answers = await receiptAnswers(rpc, some, areStrangers)
    const unsent: Hex[] = []
    for (const [n, hash] of some.entries()) {
      const answer = answers[n]!
      if (answer instanceof RpcTrouble && some.length > 1) unsent.push(hash)
      else found.set(hash, answer)
    }
    pending = [...unsent, ...pending.slice(some.length)]
    const isLate = answers.some((answer) => answer instanceof RpcTimeout)
    if (areStrangers && isLate) {
      size = 1
      if (performance.now() - startMs > SLOW_MS) break
    } else if (unsent.length === some.length) size = Math.ceil(some.length / 4)
  }
  const unread = new RpcTimeout('the receipt was not read')
  return hashes.map((hash) => {
    const receipt = found.get(hash)
    return receipt === undefined ? unread : receipt
  })
}

/**
 * Sends one request for receipts. @returns a receipt, or an error for each receipt that the chain node does not send.
 * @throws {RpcTrouble} if the node is down, or limits the rate of requests, or sends a single receipt of this service
 * too slowly.
 */
async function receiptAnswers(
  rpc: Rpc,
  hashes: readonly Hex[],
  areStrangers: boolean,
): Promise<(Receipt | null | RpcTrouble)[]> {
  let answers: RpcAnswer[]
  try {
    answers = await rpc.batch(
      hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
    )
  } catch (error) {
    if (error instanceof RpcTimeout && hashes.length > 1) return hashes.map(() => error)
    if (error instanceof RpcTimeout && areStrangers) {
      // This call throws if the node is down, because such a node does not respond to the call either.
      await rpc.call('eth_chainId', [])
      slow.set(hashes[0]!, true)
      return [error]
    }
    // HTTP 413 means that the response is too large for the chain node, for a proxy in front of the node, or for this
    // service.
    if (error instanceof RpcTrouble && error.message.endsWith('HTTP 413')) {
      return hashes.map(() => error)
    }
    throw error
  }
  return answers.map((answer) => {
    if (!answer.ok) {
      const trouble = new RpcTrouble(`eth_getTransactionReceipt: ${answer.message}`)
      if (LIMITED.test(answer.message) || LIMITED_CODES.includes(answer.code)) throw trouble
      return trouble
    }
    const { result } = answer
    return result === null ? null : read(receiptSchema, result, 'eth_getTransactionReceipt')
  })
}
