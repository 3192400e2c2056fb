/**
 * Watches the chain for the open transactions of this service. For any number of open transactions, one poll costs two
 * requests to the chain node: one for the head block, and one for the used nonces of all gas wallets. Transaction
 * receipts are fetched once, and only for used nonces.
 */
import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import { createOutage, type Outage } from '../../../shared/process/outage.ts'
import { createPause, repeat } from '../../../shared/process/pause.ts'
import { syncWallet } from '../../../sql/till/settle/gasWallets.ts'
import { recordHead, recordRpcTrouble } from '../../../sql/till/watch/chainStatus.ts'
import { findUsedNonces, hasOpenTransactions } from '../../../sql/till/watch/openTransactions.ts'
import { readNetwork, readTip, readWallets } from '../chain/chain.ts'
import { type ChainView, isKnown, type KnownChain, refreshHead } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { resolveUsed } from './minedTransactions.ts'
import { resendDropped } from './quietTransactions.ts'
import { type Reconciler, reconcile } from './reconcile.ts'

/** Limits how many receipts the watcher (which polls the chain) reads at once for transactions with used nonces. */
const LOOK_MAX = 200
const WATCH_MIN_MS = 10
/**
 * Sets the divisor for the pause before the next poll: the watcher (which polls the chain) divides the time since the
 * last change on the chain by this number.
 */
const PAUSE_SHARE = 4

/**
 * Runs the watcher, which polls the chain, until it is stopped. The promise `ready` resolves after the first poll, even
 * if the first poll fails. The checks of `reconcile` run beside the polls, because a check that the chain node answers
 * slowly would otherwise delay every settlement.
 */
export function startWatcher(view: ChainView, reconciler: Reconciler) {
  const { promise: ready, resolve: isReady } = Promise.withResolvers<void>()
  let stopped = false
  const pause = createPause()
  let nudged = false
  let lastNewsMs = performance.now()
  const memory: PollMemory = { number: undefined, recordedMs: Number.NEGATIVE_INFINITY }
  view.nudge = () => {
    nudged = true
    lastNewsMs = performance.now()
    pause.wake()
  }
  const pauseMs = (busy: boolean) => {
    if (!busy) return view.timing.idleMs
    const quietMs = (performance.now() - lastNewsMs) / PAUSE_SHARE
    return Math.min(view.timing.watchMs, Math.max(WATCH_MIN_MS, quietMs))
  }
  const ended = (async () => {
    while (!stopped) {
      nudged = false
      const { busy, news } = await look(view, memory)
      if (news) lastNewsMs = performance.now()
      isReady()
      if (!stopped && !nudged) await pause.sleep(pauseMs(busy))
    }
  })()
  const outage = createOutage('the chain')
  const checks = ready.then(() => repeat(() => check(view, reconciler, outage), view.timing.idleMs))
  return {
    ready,
    async stop() {
      stopped = true
      pause.wake()
      await Promise.all([ended, checks.then(({ stop }) => stop())])
    },
  }
}

/**
 * Holds the number of the newest block at the last poll, and the time at which a poll last recorded the newest block.
 * The time is in milliseconds of `performance.now()`.
 */
type PollMemory = { number: bigint | undefined; recordedMs: number }

/**
 * Polls the chain for changes once. A fault of the RPC node or the database is logged, and the next poll makes another
 * attempt.
 */
async function look(
  view: ChainView,
  memory: PollMemory,
): Promise<{ busy: boolean; news: boolean }> {
  try {
    if (view.network === null && !(await connect(view))) return { busy: false, news: false }
    await refreshHead(view)
    if (!isKnown(view)) return { busy: false, news: false }
    const { chainId, network } = view.network
    const { head } = view
    const isNewHead = memory.number !== head.number
    const news = await lookAtWallets(view, isNewHead)
    memory.number = head.number
    // A block that is already recorded is recorded again after some time, because `/readyz` needs to know that the node
    // still responds.
    if (isNewHead || performance.now() - memory.recordedMs >= view.timing.idleMs) {
      await recordHead(view.pool, { chainId, network, ...head })
      memory.recordedMs = performance.now()
    }
    view.outage.answered()
    return { busy: await hasOpenTransactions(view.pool, chainId), news }
  } catch (error) {
    noteTrouble(view.log, view.outage, error as Error)
    if (error instanceof RpcTrouble) {
      await recordRpcTrouble(view.pool, error.message).catch(() => {})
    }
    return { busy: true, news: false }
  }
}

/**
 * Runs the checks of `reconcile` once. A chain node that fails at a check still counts as reachable while the polls
 * succeed. Otherwise a payment whose check always fails would make all processes look unready.
 */
async function check(view: ChainView, reconciler: Reconciler, outage: Outage): Promise<void> {
  try {
    if (view.network === null) return
    const newest = await refreshHead(view)
    if (!isKnown(view)) return
    view.tipWei = await readTip(view.rpc).catch(() => view.tipWei)
    await reconcile(view, reconciler, newest)
    outage.answered()
  } catch (error) {
    noteTrouble(view.log, outage, error as Error)
  }
}

/**
 * Combines log lines about repeated faults into one line, because an RPC node that is down for an hour would fill the
 * log.
 */
function noteTrouble(log: Logger, outage: Outage, error: Error): void {
  if (isDatabaseUnavailable(error)) {
    log.warn({ err: error }, 'the chain was not looked at')
    return
  }
  const isRpc = error instanceof RpcTrouble
  outage.missed(
    (fields, message) => log.warn(isRpc ? fields : { ...fields, err: error }, message),
    error.message,
  )
}

async function connect(view: ChainView): Promise<boolean> {
  const network = await readNetwork(view.rpc)
  if (typeof network === 'number') {
    view.log.error({ chainId: network }, 'the chain of RPC_URL is not supported')
    await recordRpcTrouble(view.pool, `chain id ${network} is not supported`)
    return false
  }
  view.network = network
  view.tipWei = await readTip(view.rpc)
  view.log.info({ network: network.network, chainId: network.chainId }, 'connected to the chain')
  return true
}

/**
 * Handles the open transactions of the gas wallets (which pay the transaction fees). @returns true if at least one
 * transaction was mined.
 */
async function lookAtWallets(chain: KnownChain, isNewHead: boolean): Promise<boolean> {
  const wallets = await readWallets(
    chain.rpc,
    chain.accounts.map((account) => account.address),
  )
  let news = false
  for (const [n, account] of chain.accounts.entries()) {
    const { used, pooled, balanceWei } = wallets[n]!
    const key = account.address.toLowerCase()
    const wallet = { chainId: chain.network.chainId, address: account.address }
    if (!chain.balances.has(key)) await syncWallet(chain.pool, wallet, used)
    chain.balances.set(key, balanceWei)
    for (;;) {
      const open = await findUsedNonces(chain.pool, wallet, used, LOOK_MAX)
      const resolved = open.length > 0 && (await resolveUsed(chain, open))
      news ||= resolved
      if (!resolved || open.length < LOOK_MAX) break
    }
    if (isNewHead) await resendDropped(chain, wallet, pooled)
  }
  return news
}
