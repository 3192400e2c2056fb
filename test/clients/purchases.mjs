/**
 * Runs the reference buyer of the bench: an unmodified @x402/fetch with a raw key. Reads {url, privateKey, count,
 * inFlight} from stdin. Prints the milliseconds of each purchase, and the milliseconds from the start of the load to
 * the end of each purchase.
 */
import { ExactEvmScheme } from '@x402/evm'
import { wrapFetchWithPayment, x402Client } from '@x402/fetch'
import { privateKeyToAccount } from 'viem/accounts'

const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const { url, privateKey, count, inFlight } = JSON.parse(Buffer.concat(chunks).toString())
const client = new x402Client().register(
  'eip155:*',
  new ExactEvmScheme(privateKeyToAccount(privateKey)),
)
const pay = wrapFetchWithPayment(fetch, client)
const times = []
const ends = []
let next = 0
const startedMs = performance.now()
const lane = async () => {
  while (next++ < count) {
    const beganMs = performance.now()
    const response = await pay(url)
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    await response.text()
    const nowMs = performance.now()
    times.push(nowMs - beganMs)
    ends.push(nowMs - startedMs)
  }
}
await Promise.all(Array.from({ length: inFlight }, lane))
process.stdout.write(JSON.stringify({ times, ends }))
