/**
 * The reference of the bench: settles payments with `settle` of npm x402, one gas wallet and viem's nonceManager. Reads
 * {rpcUrl, privateKey, inFlight, deadlineMs, orders: [{paymentPayload, paymentRequirements}]} from stdin and prints
 * {settled, ms}. One lost nonce leaves all later transactions in the pool, so each wait and the whole run have a time
 * limit.
 */
import { createWalletClient, http, publicActions } from 'viem'
import { nonceManager, privateKeyToAccount } from 'viem/accounts'
import { baseSepolia } from 'viem/chains'
import { settle } from 'x402/facilitator'

const WAIT_MS = 15_000

const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const { rpcUrl, privateKey, inFlight, deadlineMs, orders } = JSON.parse(
  Buffer.concat(chunks).toString(),
)
const client = createWalletClient({
  account: privateKeyToAccount(privateKey, { nonceManager }),
  chain: baseSepolia,
  transport: http(rpcUrl, { timeout: 60_000 }),
  pollingInterval: 50,
})
  .extend(publicActions)
  .extend((base) => ({
    waitForTransactionReceipt: (wanted) =>
      base.waitForTransactionReceipt({ ...wanted, timeout: WAIT_MS }),
  }))

let next = 0
let settled = 0
let lastMs = 0
const startedMs = performance.now()
const lanes = Array.from({ length: inFlight }, async () => {
  while (next < orders.length) {
    const { paymentPayload, paymentRequirements } = orders[next++]
    const { success } = await settle(client, paymentPayload, paymentRequirements).catch(() => ({}))
    if (!success) continue
    settled++
    lastMs = performance.now() - startedMs
  }
})
const deadline = new Promise((resolve) => setTimeout(resolve, deadlineMs))
await Promise.race([Promise.all(lanes), deadline])
process.stdout.write(JSON.stringify({ settled, ms: lastMs }), () => process.exit(0))
