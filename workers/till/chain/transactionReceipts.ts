/** Reads the receipts of transactions from a chain node. */
import type { Hex } from 'viem'
import { z } from 'zod'
import { hex, quantity, read, resultOf } from './chain.ts'
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

/** Matches the errors of a node that does not send a response because of its size. */
const TOO_LARGE = /too (?:large|big|long)|size|HTTP 413/i

/**
 * Reads receipts. If a response is too large for the node, or takes too long, reads the receipts again with fewer in a
 * request. Without this repetition, a few receipts that are too large together would never be read. Other errors of the
 * node, such as a limit of requests, are not repeated.
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
    const answers = await receiptAnswers(rpc, some, found.size > 0)
    const tooLarge: Hex[] = []
    for (const [n, hash] of some.entries()) {
      const answer = answers[n]!
      if (answer instanceof RpcTrouble && some.length > 1) tooLarge.push(hash)
      else found.set(hash, answer)
    }
    if (tooLarge.length === some.length) size = Math.ceil(some.length / 4)
    pending = [...tooLarge, ...pending.slice(some.length)]
  }
  return hashes.map((hash) => found.get(hash)!)
}

/**
 * Sends one request for receipts. @param mayFail tells whether a single receipt that takes too long is its own fault,
 * because the node has already sent other receipts. @returns a receipt, or a trouble for a receipt that is too large.
 * @throws {RpcTrouble} for every other error of the node.
 */
async function receiptAnswers(
  rpc: Rpc,
  hashes: readonly Hex[],
  mayFail: boolean,
): Promise<(Receipt | null | RpcTrouble)[]> {
  let answers: RpcAnswer[]
  try {
    answers = await rpc.batch(
      hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
    )
  } catch (error) {
    const isLarge =
      error instanceof RpcTimeout || (error instanceof RpcTrouble && TOO_LARGE.test(error.message))
    if (isLarge && (hashes.length > 1 || mayFail)) return hashes.map(() => error)
    throw error
  }
  return answers.map((answer) => {
    if (!answer.ok && TOO_LARGE.test(answer.message)) {
      return new RpcTrouble(`eth_getTransactionReceipt: ${answer.message}`)
    }
    const result = resultOf(answer, 'eth_getTransactionReceipt')
    return result === null ? null : read(receiptSchema, result, 'eth_getTransactionReceipt')
  })
}
