/** Describes a fake chain whose blocks and receipts a test writes by hand. */
import { type Address, type Hex, numberToHex, pad, toEventSelector, toHex } from 'viem'
import { receiptKey } from '../../../shared/till/receiptKey.ts'
import { USDC_NETWORKS } from '../../../shared/till/usdc.ts'
import type { Pool } from '../../../sql/db.ts'
import { NO_SETTLEMENT_LIMITS } from '../../../sql/till/settle/settlementBudgets.ts'
import type { Block } from '../../../workers/till/chain/chain.ts'
import {
  DEFAULT_TIMING,
  type KnownChain,
  newChainView,
} from '../../../workers/till/chain/chainView.ts'
import { createRpc } from '../../../workers/till/chain/rpc.ts'
import { silentLog } from '../logs.ts'
import { startNode } from './fakeNode.ts'

const USED = toEventSelector('AuthorizationUsed(address,bytes32)')
const CANCELED = toEventSelector('AuthorizationCanceled(address,bytes32)')
const TRANSFER = toEventSelector('Transfer(address,address,uint256)')

type Moved = {
  asset: Address
  payer: Address
  recipient: Address
  amountAtomic: bigint
  nonce: Hex
}
type Place = { number: bigint; hash: Hex }

/**
 * Returns the block with the given number. Its hash is made from the number, unless a test gives another hash.
 */
export const blockAt = (number: bigint, changes: Partial<Block> = {}): Block => ({
  number,
  hash: pad(toHex(0xb0n + number)),
  parentHash: pad('0x1'),
  timestamp: number,
  baseFeePerGas: 1n,
  ...changes,
})

/**
 * Returns the two events that the token contract emits for each transfer in a receipt. The first event of the receipt
 * has the index 0.
 */
const logsOf = (transfers: readonly Moved[]) =>
  transfers
    .flatMap(({ asset, payer, recipient, amountAtomic, nonce }) => [
      { address: asset, topics: [USED, pad(payer), nonce], data: '0x' },
      {
        address: asset,
        topics: [TRANSFER, pad(payer), pad(recipient)],
        data: pad(toHex(amountAtomic)),
      },
    ])
    .map((log, n) => ({ ...log, logIndex: numberToHex(n) }))

export type HandChain = Disposable & {
  chain: KnownChain
  /** Holds the blocks that the fake chain node has, by number, and the newest final block. */
  blocks: Map<bigint | 'finalized', Block>
  /** Lists the RPC methods that callers have requested from the fake chain node. */
  asked: string[]
  /** Lists the authorizations that are used or cancelled, by nonce. */
  events: Map<Hex, { kind: 'used' | 'canceled'; payer: Address; txHash: Hex; block: bigint }>
  /**
   * Holds the balance of each address in lower case. An address without an entry has the balance 0.
   */
  balances: Map<string, bigint>
  /**
   * Holds the contract code of each address in lower case. Other addresses have no code. The value may also be a
   * function that returns the code at the given block, or an error of the node.
   */
  codes: Map<string, Hex | ((block: bigint) => Hex | { error: { code: number; message: string } })>
  /** Puts a transaction into a block of the fake chain. */
  mine(txHash: Hex, block: Place, transfers: readonly Moved[], status?: 0 | 1): void
  /** Makes the fake chain node refuse to send the receipt of a transaction, because the receipt is too large. */
  withholdReceipt(txHash: Hex): void
  /** Removes a transaction from the fake chain. */
  drop(txHash: Hex): void
  /** Removes all blocks, transactions and events of the fake chain. */
  reset(): void
}

export function startHandChain(pool: Pool): HandChain {
  const receipts = new Map<Hex, object>()
  const hand: Omit<HandChain, 'chain'> = {
    blocks: new Map(),
    asked: [],
    events: new Map(),
    balances: new Map(),
    codes: new Map(),
    mine(txHash, { number, hash }, transfers, status = 1) {
      receipts.set(txHash, {
        transactionHash: txHash,
        status: numberToHex(status),
        blockNumber: numberToHex(number),
        blockHash: hash,
        gasUsed: '0x1',
        logs: logsOf(transfers),
      })
    },
    withholdReceipt: (txHash) =>
      void receipts.set(txHash, { error: { code: -32003, message: 'response too large' } }),
    drop: (txHash) => void receipts.delete(txHash),
    reset() {
      const { blocks, events, balances, codes } = hand
      for (const part of [receipts, blocks, events, balances, codes]) part.clear()
      hand.asked.length = 0
    },
    [Symbol.dispose]: () => node[Symbol.dispose](),
  }
  const codeOf = (address: string, tag: string) => {
    const code = hand.codes.get(address) ?? '0x'
    return typeof code === 'string' ? code : code(BigInt(tag))
  }
  const newest = () =>
    [...hand.blocks.values()].toSorted((one, other) => Number(other.number - one.number))[0]
  const blockOf = (tag: string) => {
    const block =
      tag === 'latest' ? newest() : hand.blocks.get(tag === 'finalized' ? tag : BigInt(tag))
    if (block === undefined) return null
    const { number, timestamp, baseFeePerGas = 0n } = block
    return {
      ...block,
      number: numberToHex(number),
      timestamp: numberToHex(timestamp),
      baseFeePerGas: numberToHex(baseFeePerGas),
    }
  }
  /** Returns the block height that an RPC call states by the number or the hash of a block. */
  const heightOf = (place: string | { blockHash: Hex }) =>
    typeof place === 'string'
      ? BigInt(place)
      : [...hand.blocks.values(), chain.head].find(({ hash }) => hash === place.blockHash)!.number
  const callOf = (data: Hex, place: string | { blockHash: Hex }) => {
    const nonce: Hex = `0x${data.slice(-64)}`
    const balance = hand.balances.get(`0x${data.slice(-40)}`) ?? 0n
    if (data.length === 2 + 8 + 64) return pad(toHex(balance))
    const event = hand.events.get(nonce)
    return pad(event !== undefined && event.block <= heightOf(place) ? '0x1' : '0x0')
  }
  const eventsOf = ({ topics, fromBlock, toBlock }: any) =>
    topics[2].flatMap((nonce: Hex) => {
      const event = hand.events.get(nonce)
      if (event === undefined) return []
      if (event.block < BigInt(fromBlock) || event.block > BigInt(toBlock)) return []
      const { kind, payer, txHash, block } = event
      const selector = kind === 'used' ? USED : CANCELED
      return [
        {
          topics: [selector, pad(payer), nonce],
          transactionHash: txHash,
          blockNumber: numberToHex(block),
        },
      ]
    })
  const node = startNode((method, params) => {
    hand.asked.push(method)
    if (method === 'eth_getBlockByNumber') return blockOf(params[0])
    if (method === 'eth_getTransactionReceipt') return receipts.get(params[0]) ?? null
    if (method === 'eth_call') return callOf(params[0].data, params[1])
    if (method === 'eth_getLogs') return eventsOf(params[0])
    if (method === 'eth_getCode') return codeOf(params[0].toLowerCase(), params[1])
    return { error: { code: -32601, message: `no ${method}` } }
  })
  const view = newChainView({
    pool,
    rpc: createRpc({ url: node.url }),
    log: silentLog,
    accounts: [],
    factories: new Set(),
    receiptKey: receiptKey({ seed: new Uint8Array(32).fill(7), did: 'did:web:till.example' }),
    timing: DEFAULT_TIMING,
    limits: NO_SETTLEMENT_LIMITS,
  })
  const known = { network: USDC_NETWORKS['base-sepolia'], head: blockAt(10n) }
  const chain: KnownChain = Object.assign(view, known)
  return { ...hand, chain }
}
