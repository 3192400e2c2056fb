/** Reads the receipts of transactions from a chain node. */
import type { Hex } from 'viem'
import { z } from 'zod'
import { hex, quantity, read } from './chain.ts'
import { type Rpc, type RpcAnswer, RpcTimeout, RpcTrouble } from './rpc.ts'

const logSchema = z.object({
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
  // Only Base reports `l1Fee`, which is the cost of storing the data of a transaction on Ethereum.
  l1Fee: quantity.nullish(),
  logs: z.array(logSchema),
})

export type Receipt = z.output<typeof receiptSchema>

/** Returns the cost of a transaction in wei. Returns `null` if the node does not state the cost. */
export const feeOf = ({ gasUsed, effectiveGasPrice, l1Fee }: Receipt): bigint | null =>
  effectiveGasPrice === undefined ? null : gasUsed * effectiveGasPrice + (l1Fee ?? 0n)

/**
 * Limits how many receipts of strangers' transactions one request reads. A transaction can have two megabytes of logs.
 */
const STRANGERS_AT_ONCE = 25

/**
 * Returns the transaction receipts in the order of `hashes`, with `null` for a hash without a receipt. Reads each
 * transaction receipt only once.
 */
export async function readReceipts(rpc: Rpc, hashes: readonly Hex[]): Promise<(Receipt | null)[]> {
  const receipts = await readEach(rpc, hashes, Number.POSITIVE_INFINITY)
  return receipts.map((receipt) => {
    if (receipt instanceof RpcTrouble) throw receipt
    return receipt
  })
}

/**
 * Returns the receipts of transactions that strangers may have sent, in the order of `hashes`. Returns `undefined` for a
 * receipt that the node has but cannot send, because a node limits the size of a response.
 */
export async function readStrangersReceipts(
  rpc: Rpc,
  hashes: readonly Hex[],
): Promise<(Receipt | null | undefined)[]> {
  const receipts = await readEach(rpc, hashes, STRANGERS_AT_ONCE)
  return receipts.map((receipt) => (receipt instanceof RpcTrouble ? undefined : receipt))
}

/**
 * Reads receipts, and reads the receipts again with fewer in a request if the node did not send them. Without this
 * repetition, a few receipts that are too large together would never be read.
 */
async function readEach(
  rpc: Rpc,
  hashes: readonly Hex[],
  atOnce: number,
): Promise<(Receipt | null | RpcTrouble)[]> {
  const found = new Map<Hex, Receipt | null | RpcTrouble>()
  let pending = [...new Set(hashes)]
  let size = Math.min(atOnce, pending.length)
  while (pending.length > 0) {
    const some = pending.slice(0, size)
    const answers = await receiptAnswers(rpc, some)
    const unread = some.filter((hash, n) => {
      const answer = answers?.[n]
      if (answer?.ok !== true) return true
      const { result } = answer
      found.set(
        hash,
        result === null ? null : read(receiptSchema, result, 'eth_getTransactionReceipt'),
      )
      return false
    })
    const isStuck = unread.length === some.length
    if (isStuck && some.length === 1) {
      const answer = answers?.[0]
      const message = answer?.ok === false ? answer.message : 'no answer'
      found.set(some[0]!, new RpcTrouble(`eth_getTransactionReceipt: ${message}`))
      unread.length = 0
    } else if (isStuck) size = Math.ceil(some.length / 4)
    pending = [...unread, ...pending.slice(some.length)]
  }
  return hashes.map((hash) => found.get(hash)!)
}

/** Returns null if the node did not respond in time to a request for several receipts. */
async function receiptAnswers(rpc: Rpc, hashes: readonly Hex[]): Promise<RpcAnswer[] | null> {
  try {
    return await rpc.batch(
      hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
    )
  } catch (error) {
    if (error instanceof RpcTimeout && hashes.length > 1) return null
    throw error
  }
}
