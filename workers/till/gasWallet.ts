/** Signs, stores and sends transactions of the gas wallets: always in this order. */
import { type Hex, keccak256 } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import {
  type OpenTransaction,
  recordSends,
  type SignedTransaction,
  storeForNonce,
  storeSigned,
} from '../../sql/till/gasWallets.ts'
import type { Payment } from '../../sql/till/payments.ts'
import { sendRaw } from './chain.ts'
import type { KnownChain } from './chainView.ts'
import { RpcTrouble } from './rpc.ts'
import { transferCall } from './transfer.ts'

/** No fee above this is ever signed, in wei per gas: 100 gwei. */
const FEE_MAX_WEI = 100_000_000_000n
/** The base fee can grow by an eighth a block: double lasts for six blocks. */
const BASE_FEE_MARGIN = 2n
/** Nodes want 10 % more of a replacement; a quarter settles it. */
const BUMP_NUMERATOR = 5n
const BUMP_DENOMINATOR = 4n
const FILLER_GAS = 21_000n

type Fees = { maxFeeWei: bigint; tipWei: bigint }

const capped = (wei: bigint): bigint => (wei < FEE_MAX_WEI ? wei : FEE_MAX_WEI)

/** What a new transaction offers. */
export function marketFees({ head, tipWei }: Pick<KnownChain, 'head' | 'tipWei'>): Fees {
  const tip = capped(tipWei)
  return { maxFeeWei: capped((head.baseFeePerGas ?? 0n) * BASE_FEE_MARGIN + tip), tipWei: tip }
}

/** What a replacement offers: the market's price, and at least a quarter more than before. */
function raisedFees(chain: KnownChain, before: Fees): Fees {
  const market = marketFees(chain)
  const raise = (wei: bigint) => (wei * BUMP_NUMERATOR) / BUMP_DENOMINATOR + 1n
  const max = (left: bigint, right: bigint) => (left > right ? left : right)
  return {
    maxFeeWei: capped(max(market.maxFeeWei, raise(before.maxFeeWei))),
    tipWei: capped(max(market.tipWei, raise(before.tipWei))),
  }
}

async function sign(
  chain: KnownChain,
  account: PrivateKeyAccount,
  { nonce, payment, fees }: { nonce: bigint; payment: Payment | null; fees: Fees },
): Promise<SignedTransaction> {
  const call = payment === null ? { to: account.address, gas: FILLER_GAS } : transferCall(payment)
  const raw: Hex = await account.signTransaction({
    type: 'eip1559',
    chainId: chain.network.chainId,
    nonce: Number(nonce),
    maxFeePerGas: fees.maxFeeWei,
    maxPriorityFeePerGas: fees.tipWei,
    ...call,
  })
  return { hash: keccak256(raw), nonce, paymentId: payment?.id ?? null, raw, ...fees }
}

/** Sends one batch of a wallet after the other: the node gets the nonces in their order. */
function afterLast<Result>(
  { sending }: KnownChain,
  { address }: PrivateKeyAccount,
  work: () => Promise<Result>,
): Promise<Result> {
  const result = (sending.get(address) ?? Promise.resolve()).then(work)
  sending.set(
    address,
    result.catch(() => {}),
  )
  return result
}

/**
 * Gives each payment the next nonce of a wallet, stores the signed transactions and sends them. What cannot be sent now
 * is stored all the same, and the watcher sends it.
 */
export function sendPayments(
  chain: KnownChain,
  account: PrivateKeyAccount,
  payments: readonly Payment[],
): Promise<void> {
  return afterLast(chain, account, async () => {
    const byId = new Map(payments.map((payment) => [payment.id, payment]))
    const fees = marketFees(chain)
    const wallet = { chainId: chain.network.chainId, address: account.address }
    const signed = await storeSigned(chain.pool, wallet, [...byId.keys()], (id, nonce) =>
      sign(chain, account, { nonce, payment: byId.get(id)!, fees }),
    )
    await broadcast(chain, signed)
  })
}

/** Hands stored transactions to the node and notes what it said; trouble of the RPC is noted, never thrown. */
export async function broadcast(
  chain: KnownChain,
  transactions: readonly Pick<SignedTransaction, 'hash' | 'raw'>[],
): Promise<Map<Hex, string | null>> {
  if (transactions.length === 0) return new Map()
  let errors: (string | null)[]
  try {
    errors = await sendRaw(
      chain.rpc,
      transactions.map((one) => one.raw),
    )
  } catch (error) {
    if (!(error instanceof RpcTrouble)) throw error
    errors = transactions.map(() => error.message)
  }
  const outcomes = transactions.map(({ hash }, n) => ({ hash, error: errors[n] ?? null }))
  await recordSends(chain.pool, outcomes, chain.head.number)
  chain.nudge()
  return new Map(outcomes.map(({ hash, error }) => [hash, error]))
}

/**
 * Replaces a transaction on its own nonce at a higher fee. One whose payment waits no longer is replaced by a transfer
 * of nothing, which costs less than the refusal of the token would.
 */
export async function reprice(
  chain: KnownChain,
  account: PrivateKeyAccount,
  { stuck, payment }: { stuck: OpenTransaction; payment: Payment | null },
): Promise<boolean> {
  const fees = raisedFees(chain, stuck)
  if (fees.maxFeeWei <= stuck.maxFeeWei) return false
  const wanted = payment?.state === 'verified' ? payment : null
  const signed = await sign(chain, account, { nonce: stuck.nonce, payment: wanted, fees })
  const wallet = { chainId: chain.network.chainId, address: account.address }
  if (!(await storeForNonce(chain.pool, wallet, signed, stuck.hash))) return false
  await broadcast(chain, [signed])
  return true
}

/** Uses up a nonce that was given out and has no transaction, so that those after it can be mined. */
export async function fillGap(
  chain: KnownChain,
  account: PrivateKeyAccount,
  nonce: bigint,
): Promise<void> {
  const signed = await sign(chain, account, { nonce, payment: null, fees: marketFees(chain) })
  const wallet = { chainId: chain.network.chainId, address: account.address }
  if (await storeForNonce(chain.pool, wallet, signed, null)) await broadcast(chain, [signed])
}
