/**
 * Signs, stores and then broadcasts the transactions of the gas wallets, always in this order, so that no transaction
 * is sent that is not stored.
 */
import { type Address, type Hex, keccak256, size } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import { tracedForAll } from '../../../shared/process/tracing.ts'
import type { Payment } from '../../../sql/till/payments/payments.ts'
import {
  recordSends,
  type SignedTransaction,
  storeCall,
  storeForNonce,
  storeSigned,
} from '../../../sql/till/settle/gasWallets.ts'
import type { OpenTransaction } from '../../../sql/till/watch/openTransactions.ts'
import { sendRaw } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { transferCall, transferGas } from '../chain/transfer.ts'
import type { Fees } from '../trial/trialCalls.ts'
import { groupCall } from './paymentGroup.ts'

/** Limits the fee of every signed transaction to 100 gwei. The value is in wei per gas. */
const FEE_MAX_WEI = 100_000_000_000n
/**
 * Sets the multiple of the base fee that a new transaction offers. A block raises the base fee by at most an eighth, so
 * twice the base fee lasts for five blocks.
 */
const BASE_FEE_MARGIN = 2n
/** Sets by how much a replacement transaction raises the fee: a quarter, because chain nodes require at least 10 %. */
const BUMP_NUMERATOR = 5n
const BUMP_DENOMINATOR = 4n
const FILLER_GAS = 21_000n
/** Limits the bytes of a signed transaction, because chain nodes accept transactions of up to 128 KiB. */
const RAW_BYTES_MAX = 120_000

/** Holds a payment with its gas limit and the hash of the contract code of its payer. */
export type Sending = {
  payment: Payment
  gas: bigint
  code: Hex | null
  /**
   * Tells whether the payer's contract code still waits for its first successful payment. Until then, the service sends
   * only one payment at a time from wallets with this code.
   */
  isLone?: boolean
}

/**
 * Holds the payments that one transaction settles. The value `gas` is the measured gas limit of a single payment. If
 * `gas` is `null`, the transaction gets the highest gas limit for its payments.
 */
type Load = { payments: readonly Payment[]; gas: bigint | null; code: Hex | null }

const loadOf = ({ payment, gas, code }: Sending): Load => ({ payments: [payment], gas, code })
const groupLoad = (payments: readonly Payment[]): Load => ({ payments, gas: null, code: null })

const capped = (wei: bigint): bigint => (wei < FEE_MAX_WEI ? wei : FEE_MAX_WEI)

/** Returns the fees that a new transaction offers. */
export function marketFees({ head, tipWei }: Pick<KnownChain, 'head' | 'tipWei'>): Fees {
  const tip = capped(tipWei)
  return { maxFeeWei: capped((head.baseFeePerGas ?? 0n) * BASE_FEE_MARGIN + tip), tipWei: tip }
}

/**
 * Returns the fees of a replacement transaction. The new fees are the current market fees, but at least a quarter more
 * than the fees of the replaced transaction.
 */
function raisedFees(chain: KnownChain, before: Fees): Fees {
  const market = marketFees(chain)
  const raise = (wei: bigint) => (wei * BUMP_NUMERATOR) / BUMP_DENOMINATOR + 1n
  const max = (left: bigint, right: bigint) => (left > right ? left : right)
  return {
    maxFeeWei: capped(max(market.maxFeeWei, raise(before.maxFeeWei))),
    tipWei: capped(max(market.tipWei, raise(before.tipWei))),
  }
}

const sign = (
  chain: KnownChain,
  account: PrivateKeyAccount,
  { nonce, load, fees }: { nonce: bigint; load: Load; fees: Fees },
): Promise<SignedTransaction> =>
  signCall(chain, account, {
    nonce,
    call: callOf(account, load),
    fees,
    paymentIds: load.payments.map(({ id }) => id),
    payerCode: load.code,
  })

async function signCall(
  chain: KnownChain,
  account: PrivateKeyAccount,
  about: {
    nonce: bigint
    call: Omit<Call, 'data'> & { data?: Hex }
    fees: Fees
    paymentIds: readonly string[]
    payerCode: Hex | null
  },
): Promise<SignedTransaction> {
  const { nonce, call, fees, paymentIds, payerCode } = about
  const raw: Hex = await account.signTransaction({
    type: 'eip1559',
    chainId: chain.network.chainId,
    nonce: Number(nonce),
    maxFeePerGas: fees.maxFeeWei,
    maxPriorityFeePerGas: fees.tipWei,
    ...call,
  })
  if (size(raw) > RAW_BYTES_MAX) throw new Error(`a transaction of ${size(raw)} bytes`)
  const hash = keccak256(raw)
  return { hash, nonce, paymentIds, raw, ...fees, gasLimit: call.gas, payerCode }
}

function callOf(account: PrivateKeyAccount, { payments, gas }: Load) {
  const [first, ...others] = payments
  if (first === undefined) return { to: account.address, gas: FILLER_GAS }
  if (others.length > 0) return groupCall(payments)
  return { ...transferCall(first), gas: gas ?? transferGas(first) }
}

/** Sends the payment batches of one gas wallet one after the other, so that the chain node gets the nonces in order. */
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
 * Assigns the next nonces of a gas wallet to the payments, stores the signed transactions and broadcasts them. If the
 * chain node refuses a transaction, the watcher (which polls the chain) broadcasts it again later.
 */
export function sendPayments(
  chain: KnownChain,
  account: PrivateKeyAccount,
  sendings: readonly Sending[],
): Promise<void> {
  return afterLast(chain, account, async () => {
    const loads = new Map(sendings.map((sending) => [sending.payment.id, loadOf(sending)]))
    const lone = new Map(
      sendings.flatMap(({ payment, code, isLone }) =>
        isLone && code ? [[payment.id, code] as const] : [],
      ),
    )
    const parcels = [...loads.keys()].map((id) => [id])
    const payments = sendings.map(({ payment }) => payment)
    await inTraces(payments, () =>
      storeAndSend(chain, account, { parcels, lone, load: ([id]) => loads.get(id!)! }),
    )
  })
}

/**
 * Sends payments like {@link sendPayments}, but all payments in one group transaction. A payment that another
 * transaction has included in the meantime is left out.
 */
export function sendGroup(
  chain: KnownChain,
  account: PrivateKeyAccount,
  payments: readonly Payment[],
): Promise<void> {
  return afterLast(chain, account, () => {
    const parcels = [payments.map(({ id }) => id)]
    const load = (ids: readonly string[]) =>
      groupLoad(payments.filter(({ id }) => ids.includes(id)))
    return inTraces(payments, () =>
      storeAndSend(chain, account, { parcels, lone: new Map(), load }),
    )
  })
}

/**
 * Adds a tracing span to the trace of each payment. The tracing span covers the signing, storing and sending of the
 * transaction, and states the number of payments in the transaction.
 */
const inTraces = (payments: readonly Payment[], work: () => Promise<void>): Promise<void> =>
  tracedForAll(
    'send transaction',
    payments.map(({ traceparent }) => traceparent),
    { kind: 'client', attributes: { 'purser.payments': payments.length } },
    work,
  )

async function storeAndSend(
  chain: KnownChain,
  account: PrivateKeyAccount,
  {
    parcels,
    lone,
    load,
  }: {
    parcels: readonly (readonly string[])[]
    lone: ReadonlyMap<string, Hex>
    load: (paymentIds: readonly string[]) => Load
  },
): Promise<void> {
  const fees = marketFees(chain)
  const wallet = { chainId: chain.network.chainId, address: account.address }
  const signed = await storeSigned(chain.pool, wallet, parcels, lone, (ids, nonce) =>
    sign(chain, account, { nonce, load: load(ids), fees }),
  )
  await broadcast(chain, signed)
}

/** Describes a contract call that a gas wallet sends and that belongs to no payment. */
type Call = { to: Address; data: Hex; gas: bigint }

/**
 * Makes a gas wallet send a contract call that belongs to no payment. If the watcher (which polls the chain) must
 * replace the transaction, the replacement does not contain the call. Therefore the caller must be ready to send the
 * call again.
 */
export function sendCall(chain: KnownChain, account: PrivateKeyAccount, call: Call): Promise<void> {
  return afterLast(chain, account, async () => {
    const fees = marketFees(chain)
    const wallet = { chainId: chain.network.chainId, address: account.address }
    const signed = await storeCall(chain.pool, wallet, (nonce) =>
      signCall(chain, account, { nonce, call, fees, paymentIds: [], payerCode: null }),
    )
    await broadcast(chain, [signed])
  })
}

/**
 * Broadcasts stored transactions and records the replies of the RPC node. A fault of the RPC node is recorded, and
 * never thrown as an error.
 */
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

/** Tells whether a payment still waits for its settlement. */
export const isWaiting = ({ state }: Payment): boolean => state === 'verified'

/**
 * Tells whether the fee of a transaction can still be raised, because it is below the highest fee that the service
 * pays.
 */
export const canRaise = (chain: KnownChain, stuck: OpenTransaction): boolean =>
  raisedFees(chain, stuck).maxFeeWei > stuck.maxFeeWei

/**
 * Replaces a transaction by another one with the same nonce and a higher fee. The replacement contains those payments
 * of the stuck transaction that still wait for settlement. If no payment waits, the replacement is an empty transfer,
 * which costs less than a call that the token contract reverts.
 * @param payments are the payments that the replacement transaction may contain. A payment that was not in the stuck
 * transaction is left out.
 */
export async function reprice(
  chain: KnownChain,
  account: PrivateKeyAccount,
  { stuck, payments }: { stuck: OpenTransaction; payments: readonly Payment[] },
): Promise<boolean> {
  if (!canRaise(chain, stuck)) return false
  const fees = raisedFees(chain, stuck)
  const waiting = payments.filter(isWaiting)
  const wasGroup = stuck.paymentIds.length > 1
  const load = wasGroup || waiting.length === 0 ? groupLoad(waiting) : anew(waiting[0]!, stuck)
  const signed = await sign(chain, account, { nonce: stuck.nonce, load, fees })
  const wallet = { chainId: chain.network.chainId, address: account.address }
  if (!(await storeForNonce(chain.pool, wallet, signed, stuck.hash))) return false
  await broadcast(chain, [signed])
  return true
}

/**
 * Returns the payment, its gas limit and its code hash for a replacement transaction. The gas limit is the limit of the
 * replaced transaction, or the highest limit of the transfer if this is lower. It is lower if the payer's wallet has
 * been deployed since the first transaction.
 */
function anew(payment: Payment, { gasLimit, payerCode }: OpenTransaction): Load {
  const most = transferGas(payment)
  const gas = gasLimit !== null && gasLimit < most ? gasLimit : most
  return { payments: [payment], gas, code: payerCode }
}

/**
 * Sends an empty transaction for a nonce that is assigned but has no transaction, so that the chain can mine
 * transactions with later nonces.
 */
export async function fillGap(
  chain: KnownChain,
  account: PrivateKeyAccount,
  nonce: bigint,
): Promise<void> {
  const fees = marketFees(chain)
  const signed = await sign(chain, account, { nonce, load: groupLoad([]), fees })
  const wallet = { chainId: chain.network.chainId, address: account.address }
  if (await storeForNonce(chain.pool, wallet, signed, null)) await broadcast(chain, [signed])
}
