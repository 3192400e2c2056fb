import type { Logger } from 'pino'
import { privateKeyToAccount } from 'viem/accounts'
import { type Config, ConfigError } from '../../shared/config/config.ts'
import type { Running } from '../../shared/process/service.ts'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { didWeb, receiptKey } from '../../shared/till/receiptKey.ts'
import { createPool } from '../../sql/db.ts'
import { receiptSeeds, registerReceiptKeys } from '../../sql/till/payments/receiptKeys.ts'
import { readNetwork } from './chain/chain.ts'
import { chainRpc, type ObserveNode } from './chain/chainRpc.ts'
import { type ChainView, DEFAULT_TIMING, newChainView, type TillTiming } from './chain/chainView.ts'
import { type Rpc, RpcTrouble } from './chain/rpc.ts'
import { createSettlementLanes } from './settle/settlementLanes.ts'
import { newReconciler } from './watch/reconcile.ts'
import { startWatcher } from './watch/watcher.ts'

/**
 * Describes the till, which is the part of a process that handles payments and uses the chain. The till has its own
 * pool of database connections.
 */
export type Till = Running & {
  view: ChainView
  /**
   * Settles one payment up to the broadcast of its transaction. The function `settle` never waits for blocks of the
   * chain.
   */
  settle(paymentId: string): Promise<void>
}

const CONNECTIONS = 8

/**
 * Starts the till (the part that uses the chain) of a process. The till also starts if the RPC node is unreachable, and
 * keeps trying to reach the RPC node.
 * @throws {ConfigError} if the chain is unsupported, or if a settlement key on Base is a key of the devnet.
 */
export async function startTill(
  config: Pick<Config, 'chain' | 'http' | 'receiptSeeds' | 'dataDir' | 'limits' | 'production'>,
  databaseUrl: string,
  log: Logger,
  { timing = {}, observe }: { timing?: Partial<TillTiming>; observe?: ObserveNode } = {},
): Promise<Till> {
  const did = didWeb(config.http.baseUrl)
  const keys = receiptSeeds(config).map(({ seed }) => receiptKey({ seed, did }))
  const rpc = chainRpc(config.chain, { observe })
  await checkChain(config, rpc, log)
  const pool = createPool({
    url: databaseUrl,
    size: CONNECTIONS,
    name: 'purser till',
    log,
  })
  await registerReceiptKeys(pool, keys)
  const view = newChainView({
    pool,
    rpc,
    log,
    accounts: config.chain.settlementKeys.map((key) => privateKeyToAccount(key)),
    factories: new Set(config.chain.walletFactories),
    receiptKey: keys[0]!,
    timing: { ...DEFAULT_TIMING, ...timing },
    limits: config.limits,
  })
  const lanes = createSettlementLanes(view)
  const watcher = startWatcher(view, newReconciler())
  await watcher.ready
  return {
    view,
    settle: (paymentId) => lanes.settle(paymentId),
    async stop() {
      await lanes.drain()
      await watcher.stop()
      await pool.end()
    },
  }
}

async function checkChain(config: Pick<Config, 'chain'>, rpc: Rpc, log: Logger): Promise<void> {
  const network = await readNetwork(rpc).catch((error: unknown) => {
    if (!(error instanceof RpcTrouble)) throw error
    log.warn({ rpc: error.message }, 'the RPC does not answer; will keep trying')
    return null
  })
  if (typeof network === 'number') {
    throw new ConfigError(
      `RPC_URL: its chain id must be 8453 (base) or 84532 (base-sepolia), not ${network}`,
    )
  }
  const devnetKey: string = DEVNET_ACCOUNTS.gasWallet.privateKey
  if (network?.network === 'base' && config.chain.settlementKeys.some((key) => key === devnetKey)) {
    throw new ConfigError('SETTLEMENT_KEYS: must be keys of your own on base')
  }
}
