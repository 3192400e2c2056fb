/** A till whose worker starts once payments wait: they become one group, which lies in the pool. */
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
  /** Starts the worker, which finds all waiting payments. */
  start(): Promise<void>
  /** Stops the worker, and mines each transaction at once again. */
  rest(): Promise<void>
  /** Sends the payments as one group, which lies in the pool until a block is mined. */
  groupInPool(orders: readonly Order[]): Promise<{ payments: WaitingPayment[]; hash: Hex }>
  /** Mines what lies in the pool, then each transaction at once. */
  mineOn(): Promise<void>
  /** Removes the newest block; its transactions wait in the pool. */
  reorganise(): Promise<void>
  /** Some tests move the chain's time on: these authorizations last by its clock. */
  lasting(orders: readonly Order[]): Promise<Order[]>
  expiring(): Promise<Order>
  /** The next nonce of the gas wallet. */
  nonceOf(): Promise<number>
  /** The money that the seller has. */
  received(): Promise<bigint>
  /** The transaction of a payment, once it has settled. */
  settledBy(payment: { id: string }): Promise<Hex>
}

export async function startGroupScene(): Promise<GroupScene> {
  const till = await startTestTill({ worker: false, env: { SETTLEMENT_WAIT_MS: '50' } })
  const seller = await till.newSeller()
  // From now on the API knows the chain.
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
      // One after the other: a group has the order of its claims.
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
