/** Simulates a group of payments with the same contract call that would settle the group. */
import type { Payment } from '../../../sql/till/payments/payments.ts'
import { hex, read, resultOf, tagOf } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import type { RpcAnswer } from '../chain/rpc.ts'
import { groupCall, readGroup } from '../settle/paymentGroup.ts'
import { MULTICALL3_ADDRESS } from '../wallets/walletDeployment.ts'
import { readRevert, type Simulated } from './simulation.ts'
import { callOf, isEarly, type Sender } from './trialCalls.ts'

/**
 * Holds the result of the simulation of a payment group. `members` are the payments that succeed together. `apart` are
 * the payments that must not share a transaction with other payments. `refused` are the payments that fail when they
 * are simulated after the other payments of their group.
 */
export type GroupTrial = { members: Payment[]; apart: Payment[]; refused: Payment[] }

/**
 * Simulates in one call the payments that come from accounts, and reads the code of each payer in the same request. An
 * account may have code (EIP-7702) although its signature has 65 bytes, and this code can use up the gas of a whole
 * payment group.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function tryGroup(
  chain: KnownChain,
  payments: readonly Payment[],
  sender: Sender,
): Promise<GroupTrial> {
  const [answer, ...codeAnswers] = await chain.rpc.batch([
    groupTrial(payments, sender, 'latest'),
    ...[...payments.map(({ payer }) => payer), MULTICALL3_ADDRESS].map((address) => ({
      method: 'eth_getCode',
      params: [address, tagOf(chain.head.number)],
    })),
  ])
  const codes = codeAnswers.map((code) => read(hex, resultOf(code, 'eth_getCode'), 'eth_getCode'))
  const plain = payments.filter((_, n) => codes[n] === '0x')
  const apart = payments.filter((_, n) => codes[n] !== '0x')
  if (codes.at(-1) === '0x' || plain.length < 2) {
    return { members: [], apart: [...payments], refused: [] }
  }
  const outcomes =
    apart.length === 0
      ? readOutcomes(answer, plain.length)
      : await callGroup(chain, plain, sender, 'latest')
  const judged = await withoutEarly(chain, plain, sender, outcomes)
  if (judged === null) return { members: [], apart: [...payments], refused: [] }
  return {
    members: plain.filter((_, n) => judged[n]!.kind === 'passes'),
    apart,
    refused: plain.filter((_, n) => judged[n]!.kind !== 'passes'),
  }
}

/**
 * Repeats the simulation on the pending block for payments whose authorizations do not seem to be valid yet, as
 * `simulateNow` does. The newest block of an idle chain is old, so a new authorization seems not valid yet at this
 * block.
 */
async function withoutEarly(
  chain: KnownChain,
  plain: readonly Payment[],
  sender: Sender,
  outcomes: readonly Simulated[] | null,
): Promise<readonly Simulated[] | null> {
  if (outcomes === null || !outcomes.some(isEarly)) return outcomes
  const open = plain.filter((_, n) => outcomes[n]!.kind === 'passes' || isEarly(outcomes[n]))
  const again = await callGroup(chain, open, sender, 'pending')
  if (again === null) return null
  const byPayment = new Map(open.map((payment, n) => [payment, again[n]!]))
  return plain.map((payment, n) => byPayment.get(payment) ?? outcomes[n]!)
}

async function callGroup(
  chain: KnownChain,
  payments: readonly Payment[],
  sender: Sender,
  block: 'latest' | 'pending',
): Promise<readonly Simulated[] | null> {
  const [answer] = await chain.rpc.batch([groupTrial(payments, sender, block)])
  return readOutcomes(answer, payments.length)
}

const groupTrial = (payments: readonly Payment[], sender: Sender, block: 'latest' | 'pending') => ({
  method: 'eth_call',
  params: [callOf(sender, groupCall(payments)), block],
})

/**
 * Returns the outcome for each payment of a simulated group. Returns `null` if the chain node could not simulate the
 * group.
 */
function readOutcomes(answer: RpcAnswer | undefined, members: number): readonly Simulated[] | null {
  const results = answer?.ok ? readGroup(answer.result, members) : null
  return (
    results?.map(({ success, returnData }) =>
      success ? { kind: 'passes' } : { kind: 'refused', refusal: readRevert('', returnData) },
    ) ?? null
  )
}
