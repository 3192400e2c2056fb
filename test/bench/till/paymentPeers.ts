/**
 * Runs two comparisons of the payment benchmark: the same transfers sent directly, and settled by the reference
 * implementation of x402.
 */
import { type Hex, keccak256, numberToHex } from 'viem'
import { generatePrivateKey, type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { parseUsdc } from '../../../shared/till/usdc.ts'
import { buildChallenge } from '../../../shared/till/x402.ts'
import type { Rpc } from '../../../workers/till/chain/rpc.ts'
import { readReceipts } from '../../../workers/till/chain/transactionReceipts.ts'
import { transferCall } from '../../../workers/till/chain/transfer.ts'
import { PRICE, payTo, RESOURCE, SEPOLIA, type SignedPayment } from '../../support/till/till.ts'

const REFERENCE_DEADLINE_MS = 60_000
/** Sets the milliseconds without a receipt after which a transaction of the plain baseline counts as lost. */
const BARE_DEADLINE_MS = 30_000
/**
 * Sets the milliseconds after which a transaction is sent again, because the node leaves some transactions in its pool.
 */
const RESEND_MS = 3_000

/**
 * Runs the x402 reference implementation in a separate Node process. The measured time ends when this process has
 * settled its last payment.
 */
export async function settleByX402(
  { rpc, rpcUrl }: { rpc: Rpc; rpcUrl: string },
  payments: SignedPayment[],
  inFlight: number,
): Promise<{ settled: number; ms: number }> {
  // Each benchmark round uses a new gas wallet, because a lost nonce would block all later transactions of the same
  // wallet.
  const privateKey = generatePrivateKey()
  await fundGas(rpc, privateKeyToAccount(privateKey))
  const orders = payments.map(({ header }) => ({
    paymentPayload: JSON.parse(Buffer.from(header, 'base64').toString()),
    paymentRequirements: buildChallenge({
      network: 'base-sepolia',
      amountAtomic: parseUsdc(PRICE),
      resource: RESOURCE,
      payTo,
    }).accepts[0],
  }))
  const order = {
    rpcUrl,
    privateKey,
    inFlight,
    deadlineMs: REFERENCE_DEADLINE_MS,
    orders,
  }
  const child = Bun.spawn(['node', 'test/clients/settle.mjs'], {
    stdin: new TextEncoder().encode(JSON.stringify(order)),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await new Response(child.stdout).text())
}

/**
 * Does the minimum work that a settlement needs: it signs the transaction, sends it, and waits for its receipt. Each
 * call uses a new gas wallet.
 * @returns the milliseconds until the receipt, for each transaction that was mined before the deadline
 */
export async function sendAll(
  rpc: Rpc,
  payments: SignedPayment[],
  inFlight: number,
): Promise<number[]> {
  const wallet = privateKeyToAccount(generatePrivateKey())
  await fundGas(rpc, wallet)
  const times: number[] = []
  const deadlineMs = performance.now() + BARE_DEADLINE_MS
  let next = 0
  // Transactions are sent in the order of their nonces, because anvil leaves some early nonces in the pool.
  let sent: Promise<unknown> = Promise.resolve()
  const lane = async () => {
    while (next < payments.length && performance.now() < deadlineMs) {
      const n = next++
      const startedMs = performance.now()
      const raw = sign(wallet, payments[n]!, n)
      const mine = sent.then(async () => rpc.call('eth_sendRawTransaction', [await raw]))
      sent = mine
      await mine
      if (await isMined(rpc, await raw, deadlineMs)) times.push(performance.now() - startedMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, lane))
  return times
}

async function isMined(rpc: Rpc, raw: Hex, deadlineMs: number): Promise<boolean> {
  const hash = keccak256(raw)
  let resendMs = performance.now() + RESEND_MS
  while ((await rpc.call('eth_getTransactionReceipt', [hash])) === null) {
    if (performance.now() > deadlineMs) return false
    if (performance.now() > resendMs) {
      resendMs += RESEND_MS
      await rpc.call('eth_sendRawTransaction', [raw]).catch(() => {})
    }
    await Bun.sleep(10)
  }
  return true
}

/** Sends one token transfer in its own transaction. @returns the gas that the transfer used */
export async function sendOne(rpc: Rpc, payment: SignedPayment): Promise<number> {
  const wallet = privateKeyToAccount(generatePrivateKey())
  await fundGas(rpc, wallet)
  const raw = await sign(wallet, payment, 0)
  await rpc.call('eth_sendRawTransaction', [raw])
  if (!(await isMined(rpc, raw, performance.now() + BARE_DEADLINE_MS))) throw new Error('lost')
  const [receipt] = await readReceipts(rpc, [keccak256(raw)])
  return Number(receipt!.gasUsed)
}

const fundGas = (rpc: Rpc, { address }: PrivateKeyAccount) =>
  rpc.call('anvil_setBalance', [address, numberToHex(10n ** 20n)])

function sign(wallet: PrivateKeyAccount, payment: SignedPayment, nonce: number): Promise<Hex> {
  const { authorization, signature } = payment
  const transfer = {
    asset: SEPOLIA.usdcAddress,
    payer: authorization.from,
    recipient: authorization.to,
    amountAtomic: authorization.value,
    validAfter: authorization.validAfter,
    validBefore: authorization.validBefore,
    nonce: authorization.nonce,
    signature,
    deployment: null,
  }
  return wallet.signTransaction({
    type: 'eip1559',
    chainId: SEPOLIA.chainId,
    nonce,
    ...transferCall(transfer),
    // Each full block raises the base fee by an eighth, so the transactions offer a high maximum fee.
    maxFeePerGas: 10n ** 11n,
    maxPriorityFeePerGas: 10n ** 9n,
  })
}
