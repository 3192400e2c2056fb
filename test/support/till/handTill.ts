/**
 * Describes a till (the seller’s part of the service) on a devnet and a database, without workers. The test itself
 * starts every step of the till.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Hex } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import { receiptKey } from '../../../shared/till/receiptKey.ts'
import type { Pool } from '../../../sql/db.ts'
import { findPayment, type Payment } from '../../../sql/till/payments/payments.ts'
import type { NewClaim } from '../../../sql/till/settle/claims.ts'
import { syncWallet } from '../../../sql/till/settle/gasWallets.ts'
import { NO_SETTLEMENT_LIMITS } from '../../../sql/till/settle/settlementBudgets.ts'
import { recordHead } from '../../../sql/till/watch/chainStatus.ts'
import { type DevnetClient, devnetClient } from '../../../workers/devnet/contracts.ts'
import { startDevnet } from '../../../workers/devnet/devnet.ts'
import { readTip } from '../../../workers/till/chain/chain.ts'
import {
  DEFAULT_TIMING,
  type KnownChain,
  newChainView,
  refreshHead,
} from '../../../workers/till/chain/chainView.ts'
import { createRpc } from '../../../workers/till/chain/rpc.ts'
import { settlePayments } from '../../../workers/till/settle/settler.ts'
import { type Reconciler, reconcile } from '../../../workers/till/watch/reconcile.ts'
import { createTestDatabase } from '../database/database.ts'
import { silentLog } from '../logs.ts'
import { type RpcProxy, startRpcProxy } from './rpcProxy.ts'
import { pay, SEPOLIA, type SignedPayment } from './till.ts'
import { dropJobs, newPayment, newProject } from './tillRows.ts'

export type HandTill = AsyncDisposable & {
  pool: Pool
  client: DevnetClient
  proxy: RpcProxy
  chain: KnownChain
  projectId: string
  /**
   * Claims (stores) a payment as the API does, and stores the newest block as the block of the claim.
   */
  claim(payment: SignedPayment, changes?: Partial<NewClaim>): Promise<string>
  payment(id: string): Promise<Payment>
  /**
   * Reads the balances of the gas wallets and the newest block, even if the block number is lower than before.
   */
  look(): Promise<void>
  /** Claims (stores) a payment and sends its transaction. No watcher records the outcome. */
  send(): Promise<{ id: string; txHash: Hex }>
  /**
   * Runs the check of the chain `times` times. Each check compares the payments with the newest block of the node, and
   * corrects them.
   */
  reconcile(memory: Reconciler, times?: number): Promise<void>
  /** Deletes all payments and simulated faults, and makes the devnet mine a block for each transaction again. */
  reset(): Promise<void>
}

export async function startHandTill(): Promise<HandTill> {
  const directory = mkdtempSync(join(tmpdir(), 'purser-devnet-'))
  const log = { info() {}, warn() {} }
  const devnet = await startDevnet({ port: 0, stateFile: join(directory, 'state'), log })
  const database = await createTestDatabase()
  const { pool } = database
  const client = devnetClient(devnet.rpcUrl)
  const proxy = startRpcProxy(devnet.rpcUrl)
  const rpc = createRpc({ url: proxy.url })
  const account = privateKeyToAccount(DEVNET_ACCOUNTS.gasWallet.privateKey)
  const view = newChainView({
    pool,
    rpc,
    log: silentLog,
    accounts: [account],
    factories: new Set(),
    receiptKey: receiptKey({ seed: new Uint8Array(32).fill(7), did: 'did:web:till.example.com' }),
    timing: { ...DEFAULT_TIMING, quietMs: 0, lostMs: 0, displacedMs: 0 },
    limits: NO_SETTLEMENT_LIMITS,
  })
  const head = await refreshHead(view)
  const known = { network: SEPOLIA, head, tipWei: await readTip(rpc) }
  const chain: KnownChain = Object.assign(view, known)
  const { chainId, network } = SEPOLIA
  const meetWallet = async () => {
    const { address } = account
    const used = await client.getTransactionCount({ address })
    await syncWallet(pool, { chainId, address }, BigInt(used))
  }
  await meetWallet()
  const projectId = await newProject(pool)
  const look = async () => {
    chain.head = await refreshHead({ rpc, head: null })
    for (const { address } of chain.accounts) {
      chain.balances.set(address.toLowerCase(), await client.getBalance({ address }))
    }
  }
  const payment = async (id: string) => (await findPayment(pool, id))!
  const till: HandTill = {
    pool,
    client,
    proxy,
    chain,
    projectId,
    look,
    payment,
    async send() {
      const id = await till.claim(await pay())
      await settlePayments(chain, [id])
      return { id, txHash: (await payment(id)).txHash! }
    },
    async reconcile(memory, times = 1) {
      for (let n = 0; n < times; n++) {
        // The test reads the block directly from the node, because the simulated faults of the proxy must affect only
        // the requests of the code that corrects payments.
        const { number, hash, parentHash, timestamp, baseFeePerGas } = await client.getBlock()
        const block = { number, hash, parentHash, timestamp, baseFeePerGas: baseFeePerGas ?? 0n }
        if (block.number >= chain.head.number) chain.head = block
        await reconcile(chain, memory, block)
      }
    },
    async claim({ authorization: a, signature }, changes = {}) {
      await look()
      await recordHead(pool, { chainId, network, ...chain.head })
      return newPayment(pool, {
        projectId,
        payer: a.from,
        recipient: a.to,
        amountAtomic: a.value,
        validAfter: a.validAfter,
        validBefore: a.validBefore,
        nonce: a.nonce,
        signature,
        ...changes,
      })
    },
    async reset() {
      for (const faults of [proxy.errors, proxy.answers, proxy.edits]) faults.clear()
      proxy.fault = null
      await client.setAutomine(true)
      await client.mine({ blocks: 1, interval: 0 })
      await pool.query('truncate payments, payment_checks, chain_transactions, gas_wallets cascade')
      await dropJobs(pool)
      await meetWallet()
      chain.tipWei = await readTip(rpc)
      await look()
    },
    async [Symbol.asyncDispose]() {
      await proxy.stop()
      await database[Symbol.asyncDispose]()
      await devnet.stop()
      rmSync(directory, { recursive: true, force: true })
    },
  }
  return till
}
