/**
 * The reference of the bench: settles payments with `settle` of npm x402, one gas wallet and viem's nonceManager. Reads
 * {rpcUrl, privateKey, inFlight, orders: [{paymentPayload, paymentRequirements}]} from stdin and prints {settled, ms}.
 */
import { createWalletClient, http, publicActions } from 'viem'
import { nonceManager, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { settle } from 'x402/facilitator'

const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const { rpcUrl, privateKey, inFlight, orders } = JSON.parse(Buffer.concat(chunks).toString())
const client = createWalletClient({
  account: privateKeyToAccount(privateKey, { nonceManager }),
  chain: baseSepolia,
  transport: http(rpcUrl, { timeout: 60_000 }),
  pollingInterval: 50,
}).extend(publicActions)

let next = 0
let settled = 0
const startedMs = performance.now()
await Promise.all(
  Array.from({ length: inFlight }, async () => {
    while (next < orders.length) {
      const { paymentPayload, paymentRequirements } = orders[next++]
      const { success } = await settle(client, paymentPayload, paymentRequirements).catch(
        () => ({}),
      )
      if (success) settled++
    }
  }),
)
process.stdout.write(JSON.stringify({ settled, ms: performance.now() - startedMs }))
process.exit(0)
