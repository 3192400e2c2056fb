/**
 * Tests that a fault of the chain node, which concerns one payment of a purse (a wallet that pays), does not stop the
 * purses of other projects.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Hex } from 'viem'
import {
  type Buyer,
  newBuyer,
  type Seller,
  startPurseTill,
  startSeller,
} from '../../../support/purse/purseScene.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import type { TestTill } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

/** Sets how many new blocks make an earlier block final on anvil. */
const FINAL_BLOCKS = 66

let till: TestTill
let proxy: RpcProxy
let seller: Seller
beforeEach(async () => {
  till = await startPurseTill({
    proxy(rpcUrl) {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
  seller = startSeller(till)
  seller.terms.maxTimeoutSeconds = 15
})
afterEach(async () => {
  await seller[Symbol.asyncDispose]()
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

async function buyerWithMandate(): Promise<Buyer> {
  const buyer = await newBuyer(till)
  await buyer.giveMandate({ hosts: [seller.host] })
  return buyer
}

/** Makes a new buyer pay, and waits until the chain proves the payment. */
async function payAnew(): Promise<void> {
  const buyer = await buyerWithMandate()
  const { body } = await buyer.pay(seller.url)
  await buyer.settled(body.purchaseId, 'spent')
}

/** Makes the chain node refuse the state of all blocks but the newest 50. Full nodes keep 128 states. */
function forgetOldStates(): void {
  let newest = 0n
  const numbers = new Map<Hex, bigint>()
  proxy.edits.set('eth_getBlockByNumber', (block: { number: Hex; hash: Hex } | null, [tag]) => {
    if (block === null) return block
    numbers.set(block.hash, BigInt(block.number))
    if (tag === 'latest') newest = BigInt(block.number)
    return block
  })
  proxy.errors.set('eth_call', ([, place]) => {
    const isTag = typeof place === 'string' && !place.startsWith('0x')
    const number = typeof place === 'string' ? place : numbers.get(place.blockHash)!
    const isKept = isTag || BigInt(number) > newest - 50n
    return isKept ? null : { code: -32000, message: 'missing trie node' }
  })
}

test('with a node that keeps only the newest states, a purse gets back the money of an unused payment, and other purses still pay', async () => {
  const buyer = await buyerWithMandate()
  const { serve } = seller
  seller.serve = async () => new Response('no', { status: 400 })
  const { body } = await buyer.pay(seller.url)
  seller.serve = serve
  forgetOldStates()
  await till.client.increaseTime({ seconds: 20 })
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 0 })
  seller.terms.maxTimeoutSeconds = 120
  await payAnew()
  await buyer.settled(body.purchaseId, 'released')
})

test('if the chain node refuses one request of the purse checks, `/readyz` still reports the RPC node as ok', async () => {
  proxy.errors.set('eth_getBlockByNumber', ([tag]) =>
    tag === 'finalized' ? { code: -32000, message: 'finalized block not found' } : null,
  )
  await payAnew()
  const answers = new Set<string>()
  for (let n = 0; n < 40; n++) {
    const response = await fetch(`${till.service.url}/readyz`)
    answers.add(((await response.json()) as { checks: { rpc: string } }).checks.rpc)
    await Bun.sleep(20)
  }
  expect([...answers]).toEqual(['ok'])
})

test('purses work with a chain node that names no final block', async () => {
  proxy.errors.set('eth_getBlockByNumber', ([tag]) =>
    tag === 'finalized' ? { code: -32000, message: 'finalized block not found' } : null,
  )
  await payAnew()
})

test('a payment whose receipt the chain node cannot send is proved by its events', async () => {
  proxy.errors.set('eth_getTransactionReceipt', () => ({
    code: -32003,
    message: 'response too large',
  }))
  const buyer = await buyerWithMandate()
  const { body } = await buyer.pay(seller.url)
  const { payment } = await buyer.settled(body.purchaseId, 'spent')
  const receipt = await till.client.getTransactionReceipt({ hash: payment!.txHash as Hex })
  expect(receipt.status).toBe('success')
  await till.client.mine({ blocks: FINAL_BLOCKS, interval: 0 })
  await waitFor(
    'the final payment',
    async () => (await buyer.purchase(body.purchaseId)).payment?.final,
  )
})

test('a receipt that the chain node sends too slowly stops no payment of another purse', async () => {
  const buyer = await buyerWithMandate()
  const { settle } = seller
  const slow = new Set<Hex>()
  proxy.delays.set('eth_getTransactionReceipt', ([hash]) => (slow.has(hash) ? 6_000 : 0))
  seller.settle = async (payment) => {
    const hash = await settle(payment)
    slow.add(hash)
    return hash
  }
  const { body } = await buyer.pay(seller.url)
  expect(slow.size).toBe(1)
  seller.settle = settle
  await payAnew()
  await buyer.settled(body.purchaseId, 'spent')
})
