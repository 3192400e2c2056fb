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

/** Holds the intervals and time-outs of the till. Production uses {@link DEFAULT_TIMING}. */
export type TillTiming = {
  /** Sets the milliseconds between two polls while the service has no open transaction on the chain. */
  idleMs: number
  /** Limits the milliseconds between two polls while a transaction is open. */
  watchMs: number
  /** A transaction without news for this many milliseconds is broadcast again. */
  quietMs: number
  /** A payment without a job or a transaction for this many milliseconds is queued again. */
  lostMs: number
  /**
   * A transaction with a used nonce and without a receipt for this many milliseconds counts as displaced by another
   * transaction.
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
  /** Holds the factories that may deploy a payer's wallet at the operator's expense, in lower case. */
  factories: ReadonlySet<string>
  receiptKey: ReceiptKey
  timing: TillTiming
  /** Holds the settlement limits that the service sets for each project and day. */
  limits: SettlementLimits
}

/** Holds the state of the chain as this process sees it. Each process has one view, which settler and watcher share. */
export type ChainView = ChainTools & {
  /** Is the network to which the RPC node belongs. `null` means that the RPC node has not returned its chain id yet. */
  network: UsdcNetwork | null
  /**
   * Is the highest block that this process has seen. A lagging node does not have this block. `null` means that
   * `network` is `null` too.
   */
  head: Block | null
  tipWei: bigint
  /** Holds the balance of each gas wallet in wei at the last poll, by lower-case address. */
  balances: Map<string, bigint>
  /** Combines the log lines about an RPC that gives no answer. */
  outage: Outage
  /** Combines the log lines about gas wallets without gas. */
  gasOutage: Outage
  /** Wakes the watcher of the chain. */
  nudge: () => void
  /** Counts the batches of payments sent so far, because the gas wallets send in rotation. */
  batches: number
  /** Holds the batch that each gas wallet is sending now, by the address of the wallet. */
  sending: Map<Address, Promise<unknown>>
  /**
   * Holds the time at which a transaction with a used nonce first had no receipt, in milliseconds of
   * `performance.now()`.
   */
  missingSinceMs: Map<Hex, number>
}

/** Creates a view of the chain before the first question to the RPC node. */
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
 * Reads the newest block of the chain. `view.head` only moves forward, so a lagging node cannot set it back.
 * @returns the newest block of the node that answered.
 * @throws {RpcTrouble}
 */
export async function refreshHead(view: Pick<ChainView, 'rpc' | 'head'>): Promise<Block> {
  const newest = await readBlock(view.rpc, 'latest')
  if (newest === null) throw new RpcTrouble('there is no latest block')
  if (view.head === null || newest.number >= view.head.number) view.head = newest
  return newest
}
