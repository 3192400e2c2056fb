/** Tests how a process follows the newest block of the chain. */
import { expect, test } from 'bun:test'
import { numberToHex } from 'viem'
import { refreshHead } from '../../../../workers/till/chain/chainView.ts'
import { RpcTrouble } from '../../../../workers/till/chain/rpc.ts'
import { blockAt } from '../../../support/till/handChain.ts'

const nodeWith = (result: unknown) => ({ call: async () => result, batch: async () => [] })
const told = (number: bigint) => {
  const { hash, parentHash } = blockAt(number)
  return { number: numberToHex(number), hash, parentHash, timestamp: '0x1' }
}

test('the stored newest block of the chain never goes back, although the caller gets the lower block of a chain node that lags behind', async () => {
  const view = { rpc: nodeWith(told(8n)), head: blockAt(9n) }
  expect((await refreshHead(view)).number).toBe(8n)
  expect(view.head.number).toBe(9n)
  view.rpc = nodeWith(told(10n))
  await refreshHead(view)
  expect(view.head.number).toBe(10n)
})

test('a chain node without a newest block, or with a malformed block, counts as faulty', async () => {
  for (const [result, message] of [
    [null, 'there is no latest block'],
    [{ ...told(8n), number: 'eight' }, 'eth_getBlockByNumber: the answer is malformed'],
    [{ ...told(8n), hash: 8 }, 'eth_getBlockByNumber: the answer is malformed'],
  ] as const) {
    const view = { rpc: nodeWith(result), head: blockAt(9n) }
    const error = await refreshHead(view).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(RpcTrouble)
    expect((error as RpcTrouble).message).toBe(message)
    expect(view.head.number).toBe(9n)
  }
})
