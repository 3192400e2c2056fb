import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readChainStatus } from '../../../../sql/till/watch/chainStatus.ts'
import { type RpcProxy, startRpcProxy } from '../../../support/till/rpcProxy.ts'
import { startTestTill, type TestTill } from '../../../support/till/till.ts'
import { waitFor } from '../../../support/waitFor.ts'

let till: TestTill
let proxy: RpcProxy
beforeAll(async () => {
  till = await startTestTill({
    worker: false,
    proxy: (rpcUrl) => {
      proxy = startRpcProxy(rpcUrl)
      return proxy.url
    },
  })
})
afterAll(async () => {
  await till[Symbol.asyncDispose]()
  await proxy.stop()
})

test('a till whose chain node names an unsupported chain reports this, and connects as soon as the node names another chain', async () => {
  // The RPC node is unreachable at first, because a till does not start if its RPC node names an unsupported chain.
  proxy.fault = { status: 503 }
  const { till: started } = await till.startWorker()
  proxy.answers.set('eth_chainId', () => '0x1')
  proxy.fault = null
  const status = () => readChainStatus(till.service.database.pool)
  const isSeen = async () => (await status())?.rpcError === 'chain id 1 is not supported'
  await waitFor('the report about the chain', isSeen)
  expect([started.view.network, (await status())?.network]).toEqual([null, null])
  proxy.answers.clear()
  await waitFor('the connection', async () => (await status())?.network === 'base-sepolia')
  expect(await status()).toMatchObject({ rpcError: null })
})
