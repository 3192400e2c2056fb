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

/** Intervals and time-outs of the till. Production uses {@link DEFAULT_TIMING}. */
export type TillTiming = {
  /** Between looks at a chain without open transactions of ours. */
  idleMs: number
  /** The longest time between looks while a transaction is open. */
  watchMs: number
  /** A transaction without news for this long is broadcast again. */
  quietMs: number
  /** A payment without a job or a transaction for this long is queued again. */
  lostMs: number
  /** A transaction whose nonce is used counts as displaced after this long without a receipt. */
  displacedMs: number
}

export const DEFAULT_TIMING: TillTiming = {
  idleMs: 2_000,
  watchMs: 250,
  quietMs: 3_000,
  lostMs: 10_000,
  displacedMs: 6_000,
}

/** The RPC client, keys and settings of one process. */
type ChainTools = {
  pool: Pool
  rpc: Rpc
  log: Logger
  accounts: readonly PrivateKeyAccount[]
  /** Factories, in lower case, that may deploy a payer's wallet at our expense. */
  factories: ReadonlySet<string>
  receiptKey: ReceiptKey
  timing: TillTiming
  /** The service's limits of a project and day. */
  limits: SettlementLimits
}

/** The chain as this process sees it. One per process, shared by settler and watcher. */
export type ChainView = ChainTools & {
  /** Null until the RPC has returned its chain id. */
  network: UsdcNetwork | null
  /** The highest block seen; null while `network` is null. A lagging node does not have it. */
  head: Block | null
  tipWei: bigint
  /** Balance of each gas wallet in wei at the last look, by lower-case address. */
  balances: Map<string, bigint>
  /** Folds the log lines of an RPC that gives no answer. */
  outage: Outage
  /** Folds the log lines of gas wallets that ran out of gas. */
  gasOutage: Outage
  /** Wakes the watcher. */
  nudge: () => void
  /** Batches sent so far: the gas wallets send in rotation. */
  batches: number
  /** The batch that each gas wallet sends now, by address. */
  sending: Map<Address, Promise<unknown>>
  /** When a transaction with a used nonce first had no receipt; milliseconds of `performance.now()`. */
  missingSinceMs: Map<Hex, number>
}

/** A view before its first look. */
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

/** A view whose RPC has answered. */
export type KnownChain = ChainView & { network: UsdcNetwork; head: Block }

export const isKnown = (view: ChainView): view is KnownChain =>
  view.network !== null && view.head !== null

/**
 * Reads the newest block. `view.head` only moves forward: a lagging node must not take it back.
 * @returns the newest block of this node.
 * @throws {RpcTrouble}
 */
export async function refreshHead(view: Pick<ChainView, 'rpc' | 'head'>): Promise<Block> {
  const newest = await readBlock(view.rpc, 'latest')
  if (newest === null) throw new RpcTrouble('there is no latest block')
  if (view.head === null || newest.number >= view.head.number) view.head = newest
  return newest
}
