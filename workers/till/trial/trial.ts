/**
 * Simulates transfers in the same way as the transactions that would settle them: with the same sender, fees, gas limit
 * and block.
 */
import type { Hex } from 'viem'
import type { PrivateKeyAccount } from 'viem/accounts'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { findSuspended } from '../../../sql/till/settle/walletSuspensions.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { transferGas } from '../chain/transfer.ts'
import { marketFees } from '../settle/gasWallet.ts'
import { payerCodes } from './payerCode.ts'
import type { ChainRefusal, Simulated } from './simulation.ts'
import { estimateGas, type Sender, simulate, simulateNow } from './trialCalls.ts'

/**
 * Holds the result of a simulated transfer. `gas` is the gas limit to sign. `code` is the hash of the payer's contract
 * code. A `code` of `null` means an account without code.
 */
export type Trial = { outcome: Simulated; gas: bigint; code: Hex | null }

/**
 * Sets the margin of the gas limit for a wallet contract to a quarter of the measured gas. The margin is needed because
 * the first USDC of a recipient costs 17,100 gas more.
 */
const MARGIN_DIVISOR = 4n

/** Returns the next gas wallet in rotation that can pay for `gas`. Returns `null` if no wallet can. */
export function nextAccount(chain: KnownChain, gas: bigint): PrivateKeyAccount | null {
  const { maxFeeWei } = marketFees(chain)
  const usable = chain.accounts.filter((account) => {
    const balance = chain.balances.get(account.address.toLowerCase())
    return balance === undefined || balance >= maxFeeWei * gas
  })
  return usable[chain.batches % usable.length] ?? null
}

/** Returns the highest gas limit among the given transfers. */
export const highestGas = (transfers: readonly Transfer[]): bigint =>
  transfers.map(transferGas).toSorted((a, b) => (a < b ? 1 : -1))[0] ?? 0n

/**
 * Returns the sender of a trial. If no gas wallet can pay, no transaction is sent and the trial leaves out the fees.
 */
export const senderOf = (chain: KnownChain, account: PrivateKeyAccount | null): Sender =>
  account === null
    ? { from: chain.accounts[0]!.address, fees: null }
    : { from: account.address, fees: marketFees(chain) }

/**
 * Simulates transfers in order. An account runs no code, so one call on the newest block decides. A wallet contract
 * could tell a simulated call from the transaction by its gas or block. So the gas of a contract's transfer is
 * measured, and the call is repeated with this gas limit on the pending block.
 * @throws {RpcTrouble}
 */
export async function tryTransfers(
  chain: KnownChain,
  transfers: readonly Transfer[],
  sender: Sender,
): Promise<Trial[]> {
  const [codes, outcomes] = await Promise.all([
    payerCodes(chain.rpc, transfers, chain.head.number),
    simulateNow(chain.rpc, transfers, sender),
  ])
  const waits = await areSuspended(chain, transfers, codes)
  const trials: Trial[] = transfers.map((transfer, n) => ({
    outcome: waits[n] ? { kind: 'refused', refusal: SUSPENDED } : outcomes[n]!,
    gas: transferGas(transfer),
    code: codes[n]!,
  }))
  const contracts = transfers.flatMap((transfer, n) => {
    const trial = trials[n]!
    return trial.code !== null && trial.outcome.kind === 'passes' ? [{ transfer, trial }] : []
  })
  await measure(chain, contracts, sender)
  return trials
}

/**
 * Measures the gas of payments from wallet contracts. The outcome and the gas limit are written into each payment's
 * trial.
 */
async function measure(
  chain: KnownChain,
  contracts: readonly { transfer: Transfer; trial: Trial }[],
  sender: Sender,
): Promise<void> {
  const measures = await estimateGas(
    chain.rpc,
    contracts.map(({ transfer }) => transfer),
    sender,
  )
  const measured = contracts.filter(({ transfer, trial }, n) => {
    const measure = measures[n]!
    if (!measure.ok) trial.outcome = measure.outcome
    else trial.gas = boundedGas(measure.gas, transferGas(transfer))
    return measure.ok
  })
  const outcomes = await simulate(
    chain.rpc,
    measured.map(({ transfer }) => transfer),
    { ...sender, block: 'pending', gas: measured.map(({ trial }) => trial.gas) },
  )
  for (const [n, { trial }] of measured.entries()) trial.outcome = outcomes[n]!
}

function boundedGas(measured: bigint, most: bigint): bigint {
  const limit = measured + measured / MARGIN_DIVISOR
  return limit < most ? limit : most
}

const SUSPENDED: ChainRefusal = {
  kind: 'suspended',
  reason: 'smart_wallet_suspended',
  detail: 'a transaction of this wallet or of its code reverted on chain in the last hours',
}

/** Tells for each payment whether its payer, or the payer's code, is suspended after a revert. */
const areSuspended = (
  chain: KnownChain,
  transfers: readonly Transfer[],
  codes: readonly (Hex | null)[],
): Promise<boolean[]> =>
  findSuspended(
    chain.pool,
    chain.network.chainId,
    transfers.map(({ payer }, n) => ({ payer, code: codes[n]! })),
  )

/**
 * Returns the refusal of a suspended payer without a call of the payer's code. Returns `null` if the payer may pay.
 * @throws {RpcTrouble}
 */
export async function suspensionOf(
  chain: KnownChain,
  transfer: Transfer,
): Promise<ChainRefusal | null> {
  const codes = await payerCodes(chain.rpc, [transfer], chain.head.number)
  const [waits] = await areSuspended(chain, [transfer], codes)
  return waits ? SUSPENDED : null
}
