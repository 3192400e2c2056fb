/**
 * Simulates transfers under the conditions of the transactions that would settle the transfers: with the same sender,
 * fees, gas limit and block.
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
 * Holds the result of a simulated transfer. `gas` is the gas limit that the real transaction must have. `code` is the
 * hash of the payer's contract code, or `null` if the payer is an account without code.
 */
export type Trial = { outcome: Simulated; gas: bigint; code: Hex | null }

/**
 * Sets the margin by which the gas limit for a wallet contract exceeds the measured gas: one quarter. The margin is
 * needed because the first USDC that a recipient gets costs 17,100 gas more.
 */
const MARGIN_DIVISOR = 4n

/**
 * Returns the next gas wallet, in rotation, whose balance pays for `gas`. Returns `null` if there is no such wallet.
 */
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
 * Returns the sender for a simulated transfer. If no gas wallet can pay the fees, the transfer is simulated without
 * fees, because no transaction will be sent.
 */
export const senderOf = (chain: KnownChain, account: PrivateKeyAccount | null): Sender =>
  account === null
    ? { from: chain.accounts[0]!.address, fees: null }
    : { from: account.address, fees: marketFees(chain) }

/**
 * Simulates several transfers in order. An account without code runs no code of its own, so one simulated call on the
 * newest block decides about its transfer. A wallet contract runs code, which could recognise a simulated call by its
 * gas or its block. Therefore the service first measures the gas of such a transfer. It then simulates the transfer
 * with the resulting gas limit on the pending block.
 * @throws {RpcTrouble} if the chain node does not respond.
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
 * Measures the gas of payments from wallet contracts. Writes the outcome and the gas limit of each payment into its
 * simulation result.
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

/** Tells for each payment whether its payer, or the contract code of the payer, is suspended after a revert. */
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
 * If a payer is suspended, returns a refusal without running the code of the payer. Returns `null` if the payer is not
 * suspended.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function suspensionOf(
  chain: KnownChain,
  transfer: Transfer,
): Promise<ChainRefusal | null> {
  const codes = await payerCodes(chain.rpc, [transfer], chain.head.number)
  const [waits] = await areSuspended(chain, [transfer], codes)
  return waits ? SUSPENDED : null
}
