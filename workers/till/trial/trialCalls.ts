/**
 * Simulates token transfers by `eth_call`, without sending transactions. Every function in this file throws RpcTrouble
 * if the chain node does not respond.
 */
import { type Address, numberToHex } from 'viem'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { quantity, read, tagOf } from '../chain/chain.ts'
import type { Rpc } from '../chain/rpc.ts'
import { transferCall } from '../chain/transfer.ts'
import { readSimulation, type Simulated } from './simulation.ts'

/**
 * Simulates transfers on the newest block of the chain. On an idle chain this block is old, so a new payment
 * authorization seems not valid yet. Only such transfers are simulated again on the pending block, because a chain node
 * may run its whole mempool for this block.
 */
export async function simulateNow(
  rpc: Rpc,
  transfers: readonly Transfer[],
  sender: Sender,
): Promise<Simulated[]> {
  const results = await simulate(rpc, transfers, { ...sender, block: 'latest' })
  const early = transfers.filter((_, n) => isEarly(results[n]))
  const again = await simulate(rpc, early, { ...sender, block: 'pending' })
  return results.map((result) => (isEarly(result) ? again.shift()! : result))
}

/** Tells whether a transfer is refused only because the time of the block is too low. */
export const isEarly = (result: Simulated | undefined): boolean =>
  result?.kind === 'refused' && result.refusal.kind === 'early'

/**
 * Describes the gas wallet that would send a transaction, and the fees that the transaction would offer. If `fees` is
 * `null`, no gas wallet can pay the fees.
 */
export type Sender = { from: Address; fees: Fees | null }

/** Holds the fees of a transaction in wei per gas. */
export type Fees = { maxFeeWei: bigint; tipWei: bigint }

/**
 * Returns a simulated call that has the fields of the later transaction. Without the fee fields, GASPRICE would be 0,
 * and a wallet contract could tell the simulated call from the transaction.
 */
export const callOf = (
  { from, fees }: Sender,
  { to, data, gas }: ReturnType<typeof transferCall>,
) => ({
  from,
  to,
  data,
  gas: numberToHex(gas),
  ...(fees === null
    ? {}
    : {
        maxFeePerGas: numberToHex(fees.maxFeeWei),
        maxPriorityFeePerGas: numberToHex(fees.tipWei),
      }),
})

/**
 * Simulates transfers on top of a given block.
 * @param options.gas is the gas limit for each transfer. By default each transfer gets the highest gas limit that a
 * transfer may have.
 */
export async function simulate(
  rpc: Rpc,
  transfers: readonly Transfer[],
  options: Sender & { block: bigint | 'latest' | 'pending'; gas?: readonly bigint[] },
): Promise<Simulated[]> {
  const answers = await rpc.batch(
    transfers.map((transfer, n) => {
      const call = transferCall(transfer, { trial: true })
      return {
        method: 'eth_call',
        params: [
          callOf(options, { ...call, gas: options.gas?.[n] ?? call.gas }),
          tagOf(options.block),
        ],
      }
    }),
  )
  return answers.map((answer, n) => readSimulation(transfers[n]!, answer))
}

/**
 * Returns for each transfer the minimum gas with which it succeeds on the pending block, or the reason why the chain
 * node refuses it.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function estimateGas(
  rpc: Rpc,
  transfers: readonly Transfer[],
  sender: Sender,
): Promise<({ ok: true; gas: bigint } | { ok: false; outcome: Simulated })[]> {
  const answers = await rpc.batch(
    transfers.map((transfer) => ({
      method: 'eth_estimateGas',
      params: [callOf(sender, transferCall(transfer)), 'pending'],
    })),
  )
  return answers.map((answer, n) => {
    if (answer.ok) return { ok: true, gas: read(quantity, answer.result, 'eth_estimateGas') }
    return { ok: false, outcome: readSimulation({ deployment: transfers[n]!.deployment }, answer) }
  })
}
