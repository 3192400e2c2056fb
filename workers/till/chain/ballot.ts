/** Compares the replies of two chain nodes by the fields that the till (the payment part of the service) reads. */
import type { RpcAnswer } from './rpc.ts'

/**
 * Names the JSON-RPC methods whose results may differ between chain nodes although no node is at fault. The results are
 * counts, balances, fees and estimates.
 */
export const QUANTITIES: ReadonlySet<string> = new Set([
  'eth_getTransactionCount',
  'eth_getBalance',
  'eth_maxPriorityFeePerGas',
  'eth_estimateGas',
])

const BLOCK = ['number', 'hash', 'parentHash', 'timestamp', 'baseFeePerGas']
const RECEIPT = ['transactionHash', 'status', 'blockNumber', 'blockHash', 'gasUsed']
const LOG = ['address', 'topics', 'data', 'logIndex']
const EVENT = ['address', 'topics', 'data', 'transactionHash', 'blockNumber', 'logIndex']

/**
 * Holds the JSON-RPC error code of a revert in Geth and in clients that follow Geth. A revert is the chain's answer, so
 * it counts as a vote. Every other JSON-RPC error is a fault of the chain node, so the node does not vote.
 */
const REVERTED = 3
const REVERT = /revert|out ?of ?gas/i

/**
 * Returns a text that represents the reply of a chain node in a vote. Equal texts mean equal replies. The text `unseen`
 * means that the node has not seen the block or receipt yet. `null` means that the node has a fault and does not vote.
 */
export function keyOfAnswer(method: string, answer: RpcAnswer): string | null {
  if (!answer.ok) {
    const isRevert = answer.code === REVERTED || REVERT.test(answer.message)
    return isRevert ? `revert ${lower(answer.data)}` : null
  }
  const { result } = answer
  switch (method) {
    case 'eth_getBlockByNumber':
      return result === null ? 'unseen' : pick(result, BLOCK)
    case 'eth_getTransactionReceipt':
      return result === null ? 'unseen' : receipt(result)
    case 'eth_getLogs':
      return Array.isArray(result)
        ? result
            .map((log) => pick(log, EVENT))
            .toSorted()
            .join('\n')
        : null
    default:
      return lower(result)
  }
}

function receipt(result: unknown): string {
  const { logs } = result as { logs?: unknown }
  const events = Array.isArray(logs) ? logs.map((log) => pick(log, LOG)) : []
  return [pick(result, RECEIPT), ...events].join('\n')
}

const pick = (value: unknown, fields: readonly string[]): string => {
  const from = (typeof value === 'object' && value !== null ? value : {}) as Record<string, unknown>
  return fields.map((field) => lower(from[field])).join(' ')
}

/** Normalises a value in a reply, because chain nodes write hexadecimal digits in either case. */
const lower = (value: unknown): string => JSON.stringify(value ?? null).toLowerCase()
