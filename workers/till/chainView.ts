import type { Logger } from 'pino'
import type { Address, Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { createOutage, type Outage } from '../../shared/process/outage.ts'
import type { ReceiptKey } from '../../shared/till/receiptKey.ts'
import type { UsdcNetwork } from '../../shared/till/usdc.ts'
import type { Pool } from '../../sql/db.ts'
import { type Block, readBlock } from './chain.ts'
import { type Rpc, RpcTrouble } from './rpc.ts'

/** How long the till waits for what. Production uses the defaults of {@link DEFAULT_TIMING}. */
export type TillTiming = {
  /** Between looks at a chain where nothing of ours is under way. */
  idleMs: number
  /** The longest time between looks while something is. */
  watchMs: number
  /** After this long without news, a transaction is sent again. */
  quietMs: number
  /** After this long, a payment without a job or a transaction is taken up again. */
  lostMs: number
  /** How long a used nonce may have no receipt before somebody else is taken to have used it. */
  displacedMs: number
}

export const DEFAULT_TIMING: TillTiming = {
  idleMs: 2_000,
  watchMs: 250,
  quietMs: 3_000,
  lostMs: 10_000,
  displacedMs: 6_000,
}

/** What a process reaches the chain with, and signs with. */
type ChainTools = {
  pool: Pool
  rpc: Rpc
  log: Logger
  accounts: readonly PrivateKeyAccount[]
  /** Factories, in lower case, that may deploy a payer's wallet at our expense. */
  factories: ReadonlySet<string>
  receiptKey: ReceiptKey
  timing: TillTiming
}

/** The chain as this process sees it. One per process, shared by settling and watching. */
export type ChainView = ChainTools & {
  /** Null until the RPC has told its chain id. */
  network: UsdcNetwork | null
  /** The highest block seen; null with `network`. A node that lags behind it does not have it. */
  head: Block | null
  tipWei: bigint
  /** Wei each gas wallet holds, by address in lower case, as of the last look. */
  balances: Map<string, bigint>
  /** Folds the log lines of a chain that is out of sight. */
  outage: Outage
  /** The same for gas that ran out. */
  gasOutage: Outage
  /** Makes the watcher look now. */
  nudge: () => void
  /** Batches sent so far: gas wallets take turns. */
  batches: number
  /** The batch that each gas wallet sends now, by address. */
  sending: Map<Address, Promise<unknown>>
  /** When a transaction was first without a receipt though its nonce is used; milliseconds of `performance.now()`. */
  missingSinceMs: Map<Hex, number>
}

/** The view of a chain that nobody has looked at yet. */
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

/** The part of the view that is there once the RPC has answered. */
export type KnownChain = ChainView & { network: UsdcNetwork; head: Block }

/** Whether the RPC has answered yet. */
export const isKnown = (view: ChainView): view is KnownChain =>
  view.network !== null && view.head !== null

/**
 * Reads the newest block. The view moves forward only, for a node that lags behind must not take it back; `newest` is
 * what this node said.
 * @throws {RpcTrouble}
 */
export async function refreshHead(view: Pick<ChainView, 'rpc' | 'head'>): Promise<Block> {
  const newest = await readBlock(view.rpc, 'latest')
  if (newest === null) throw new RpcTrouble('there is no latest block')
  if (view.head === null || newest.number >= view.head.number) view.head = newest
  return newest
}
