/**
 * Describes a till (the seller’s part of the service) whose worker starts only when payments already wait, so that they
 * become one group. The group's transaction then waits in the transaction pool of the chain.
 */
import { type Hex, parseAbi, parseGwei } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { Agent } from '../service.ts'
import { payTo, SEPOLIA, startTestTill, type TestTill, type TillWorker } from './till.ts'
import {
  claimAll,
  inPool,
  type Order,
  reaches,
  transactionsOf,
  type WaitingPayment,
} from './waitingPayments.ts'

export type GroupScene = AsyncDisposable & {
  till: TestTill
  seller: Agent
  /** Starts the worker for payments, which finds all waiting payments at once. */
  start(): Promise<void>
  /** Stops the worker, and makes the devnet mine a block for each transaction again. */
  rest(): Promise<void>
  /** Sends the payments as one group, which stays in the transaction pool until a block is mined. */
  groupInPool(orders: readonly Order[]): Promise<{ payments: WaitingPayment[]; hash: Hex }>
  /** Mines the transactions in the pool, and makes the devnet mine a block for each transaction again. */
  mineOn(): Promise<void>
  /** Removes the newest block of the devnet. The transactions of the removed block return to the transaction pool. */
  reorganise(): Promise<void>
  /**
   * Makes payment orders with authorizations that stay valid for long, because some tests move the clock of the chain
   * forward.
   */
  lasting(orders: readonly Order[]): Promise<Order[]>
  expiring(): Promise<Order>
  /** Returns the next unused nonce of the gas wallet. */
  nonceOf(): Promise<number>
  /** Returns the USDC balance of the seller. */
  received(): Promise<bigint>
  /** Waits until a payment is settled. @returns the hash of the settling transaction */
  settledBy(payment: { id: string }): Promise<Hex>
}

export async function startGroupScene(): Promise<GroupScene> {
  const till = await startTestTill({ worker: false, env: { SETTLEMENT_WAIT_MS: '50' } })
  const seller = await till.newSeller()
  // The worker has run once and stored the state of the chain in the database, so that the API knows the chain.
  await (await till.startWorker()).stop()
  const { client } = till
  let worker: TillWorker | null = null
  const lowFee = () => client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('1') })
  const scene: GroupScene = {
    till,
    seller,
    async start() {
      worker = await till.startWorker()
    },
    async rest() {
      await client.setAutomine(true)
      await client.mine({ blocks: 1 })
      await worker?.stop()
      worker = null
    },
    async groupInPool(orders) {
      await lowFee()
      await client.mine({ blocks: 1 })
      await client.setAutomine(false)
      // The test claims (stores) the payments one by one, because a settlement group keeps the order of the claims.
      const payments: WaitingPayment[] = []
      for (const order of await scene.lasting(orders)) {
        payments.push(...(await claimAll(seller, [order])))
      }
      await scene.start()
      const hash = await inPool(till, payments[0]!.id)
      const [group, ...others] = await transactionsOf(till, payments)
      if (group?.members !== payments.length || others.length > 0) throw new Error('no group')
      return { payments, hash }
    },
    async mineOn() {
      await lowFee()
      await client.mine({ blocks: 1 })
      await client.setAutomine(true)
    },
    reorganise: () => client.request({ method: 'anvil_reorg', params: [1, []] } as never),
    async lasting(orders) {
      const { timestamp } = await client.getBlock()
      return orders.map(({ changes, ...order }) => ({
        ...order,
        changes: { validBefore: timestamp + 100_000n, ...changes },
      }))
    },
    async expiring() {
      const { timestamp } = await client.getBlock()
      return { changes: { validBefore: timestamp + 60n } }
    },
    nonceOf: () => client.getTransactionCount({ address: DEVNET_ACCOUNTS.gasWallet.address }),
    received: () =>
      client.readContract({
        address: SEPOLIA.usdcAddress,
        abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
        functionName: 'balanceOf',
        args: [payTo],
      }),
    settledBy: async ({ id }) => (await reaches(seller, id, 'settled')).txHash,
    async [Symbol.asyncDispose]() {
      await till[Symbol.asyncDispose]()
    },
  }
  return scene
}
