import type { Logger } from 'pino'
import type { Address, Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { createOutage, type Outage } from '../../../shared/process/outage.ts'
import type { ReceiptKey } from '../../../shared/till/receiptKey.ts'
import type { UsdcNetwork } from '../../../shared/till/usdc.ts'
import type { Pool } from '../../../sql/db.ts'
import type { SettlementLimits } from '../../../sql/till/settle/settlementBudgets.ts'
import { type Block, readBlock } from './chain.ts'
import { type Rpc, RpcTrouble } from './rpc.ts'

/**
 * Holds the intervals and timeouts of the till (the payment part of the service). In production the service uses {@link
 * DEFAULT_TIMING}.
 */
export type TillTiming = {
  /** Sets how many milliseconds pass between two polls of the chain while the service has no open transaction. */
  idleMs: number
  /** Sets how many milliseconds pass between two polls of the chain at most while a transaction is open. */
  watchMs: number
  /**
   * Sets the milliseconds after which the service broadcasts an open transaction again if its state has not changed.
   */
  quietMs: number
  /**
   * Sets the milliseconds after which a payment gets a new job, if it has neither a job nor a transaction.
   */
  lostMs: number
  /**
   * Sets the milliseconds after which a transaction counts as replaced by another one: its nonce is used, but its
   * receipt is missing.
   */
  displacedMs: number
}

export const DEFAULT_TIMING: TillTiming = {
  idleMs: 2_000,
  watchMs: 250,
  quietMs: 3_000,
  lostMs: 10_000,
  displacedMs: 6_000,
}

/** Holds the RPC client, the keys and the settings that one process uses for the chain. */
type ChainTools = {
  pool: Pool
  rpc: Rpc
  log: Logger
  accounts: readonly PrivateKeyAccount[]
  /**
   * Holds the factory contracts that may deploy the wallet of a payer at the expense of the operator, in lower case.
   */
  factories: ReadonlySet<string>
  receiptKey: ReceiptKey
  timing: TillTiming
  /** Holds the settlement limits that the service sets for each project and day. */
  limits: SettlementLimits
}

/**
 * Holds the state of the chain as this process sees it. Each process has one view of the chain, which the settler
 * (which settles payments) and the watcher (which polls the chain) share.
 */
export type ChainView = ChainTools & {
  /**
   * Holds the blockchain network to which the RPC node belongs, or `null` if the RPC node has not returned its chain id
   * yet.
   */
  network: UsdcNetwork | null
  /**
   * Holds the highest block of the chain that this process has seen. A chain node that lags behind may not have this
   * block yet. The value `head` is `null` as long as `network` is `null`.
   */
  head: Block | null
  tipWei: bigint
  /** Holds the balance of each gas wallet in wei at the last poll, by the address of the gas wallet in lower case. */
  balances: Map<string, bigint>
  /** Combines repeated log lines about an RPC node that does not respond into one line. */
  outage: Outage
  /** Combines repeated log lines about gas wallets without gas into one line. */
  gasOutage: Outage
  /** Wakes the watcher, which polls the chain. */
  nudge: () => void
  /** Counts the batches of payments sent so far, so that the gas wallets can send the batches in rotation. */
  batches: number
  /** Holds the batch of payments that each gas wallet is sending now, by the address of the wallet. */
  sending: Map<Address, Promise<unknown>>
  /**
   * Holds the transactions whose nonce is used but whose receipt is missing. The value is the time since which the
   * receipt has been missing, in milliseconds of `performance.now()`.
   */
  missingSinceMs: Map<Hex, number>
}

/** Creates a view of the chain before the first request to the RPC node. */
export const newChainView = (tools: ChainTools): ChainView => ({
  ...tools,
  network: null,
  head: null,
  tipWei: 0n,
  balances: new Map(),
  outage: createOutage('the chain'),
  gasOutage: createOutage('gas'),
  nudge: () => {},
  batches: 0,
  sending: new Map(),
  missingSinceMs: new Map(),
})

/** Describes a view of the chain after the RPC node has answered for the first time. */
export type KnownChain = ChainView & { network: UsdcNetwork; head: Block }

export const isKnown = (view: ChainView): view is KnownChain =>
  view.network !== null && view.head !== null

/**
 * Reads the newest block from the chain node. The block number of `view.head` never decreases, so a chain node that
 * lags behind cannot replace the head by an older block.
 * @returns the newest block of the node that responded.
 * @throws {RpcTrouble} if no node responds.
 */
export async function refreshHead(view: Pick<ChainView, 'rpc' | 'head'>): Promise<Block> {
  const newest = await readBlock(view.rpc, 'latest')
  if (newest === null) throw new RpcTrouble('there is no latest block')
  if (view.head === null || newest.number >= view.head.number) view.head = newest
  return newest
}
