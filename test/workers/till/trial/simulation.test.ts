/**
 * Tests the three outcomes of a simulated transfer: the transfer succeeds, the chain refuses it, or the chain node is
 * at fault.
 */
import { describe, expect, test } from 'bun:test'
import { encodeErrorResult, encodeFunctionResult, type Hex, multicall3Abi, parseAbi } from 'viem'
import type { RpcAnswer } from '../../../../workers/till/chain/rpc.ts'
import { readSimulation } from '../../../../workers/till/trial/simulation.ts'

const deployment = { factory: `0x${'aa'.repeat(20)}`, factoryData: '0x' } as const
const revert = (text: string): Hex =>
  encodeErrorResult({ abi: parseAbi(['error Error(string)']), args: [text] })
const error = (code: number, message: string, data?: unknown): RpcAnswer => ({
  ok: false,
  code,
  message,
  data,
})
const trial = (deployed: boolean, success: boolean, returnData: Hex): RpcAnswer => ({
  ok: true,
  result: encodeFunctionResult({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    result: [
      { success: deployed, returnData: '0x' },
      { success, returnData },
    ],
  }),
})
const outcome = (answer: RpcAnswer, of: { deployment: typeof deployment | null }) => {
  const read = readSimulation(of, answer)
  return read.kind === 'refused' ? `${read.refusal.kind}: ${read.refusal.reason}` : read.kind
}

describe('the simulation of a transfer tells whether the transfer succeeds, is refused or is unknown', () => {
  test.each<[RpcAnswer, string]>([
    [{ ok: true, result: '0x' }, 'passes'],
    [error(3, 'execution reverted'), 'final: invalid_transaction_state'],
    [error(3, 'no word of it'), 'final: invalid_transaction_state'],
    [error(-32000, 'execution reverted'), 'final: invalid_transaction_state'],
    [error(-32000, 'out of gas'), 'final: invalid_transaction_state'],
    [error(-32603, 'EVM error OutOfGas'), 'final: invalid_transaction_state'],
    [error(-32000, 'header not found'), 'trouble'],
    [error(429, 'too many requests'), 'trouble'],
    [
      error(3, 'execution reverted', revert('ERC20: transfer amount exceeds balance')),
      'final: insufficient_funds',
    ],
    [
      error(3, 'execution reverted: FiatTokenV2: invalid signature'),
      'final: invalid_exact_evm_payload_signature',
    ],
    [
      error(3, 'x', revert('FiatTokenV2: authorization is used or canceled')),
      'used: invalid_exact_evm_nonce_already_used',
    ],
    [
      error(3, 'x', revert('FiatTokenV2: authorization is expired')),
      'expired: invalid_exact_evm_payload_authorization_valid_before',
    ],
    [
      error(3, 'x', revert('FiatTokenV2: authorization is not yet valid')),
      'early: invalid_exact_evm_payload_authorization_valid_after',
    ],
  ])('a simulated transfer with the RPC answer %j has the outcome %s', (answer, expected) => {
    expect(outcome(answer, { deployment: null })).toBe(expected)
  })
})

describe('the simulation of a transfer that deploys the payer’s wallet tells whether both steps succeed', () => {
  const badSignature = revert('FiatTokenV2: invalid signature')
  test.each<[string, RpcAnswer, string]>([
    ['deployment and charge pass', trial(true, true, '0x'), 'passes'],
    ['the wallet was deployed before', trial(false, true, '0x'), 'passes'],
    [
      'the charge fails',
      trial(true, false, badSignature),
      'final: invalid_exact_evm_payload_signature',
    ],
    [
      'the charge fails without a reason',
      trial(true, false, '0x'),
      'final: invalid_transaction_state',
    ],
    [
      'deployment and charge fail',
      trial(false, false, badSignature),
      'final: smart_wallet_deployment_failed',
    ],
    ['no gas is left', trial(false, false, '0x'), 'final: smart_wallet_deployment_failed'],
    [
      'the deployed wallet lacks funds',
      trial(false, false, revert('ERC20: transfer amount exceeds balance')),
      'final: insufficient_funds',
    ],
    ['the whole call fails', error(-32000, 'out of gas'), 'final: smart_wallet_deployment_failed'],
    ['Multicall3 is not deployed', { ok: true, result: '0x' }, 'trouble'],
    ['the node lags', error(-32000, 'header not found'), 'trouble'],
  ])(
    'the simulated deployment and transfer have the expected outcome when %s',
    (_, answer, expected) => {
      expect(outcome(answer, { deployment })).toBe(expected)
    },
  )
})

test('the reason of a refused transfer has no character that PostgreSQL cannot store', () => {
  const read = readSimulation({ deployment: null }, error(3, 'x', revert('no\0 way')))
  expect(read).toMatchObject({ kind: 'refused', refusal: { detail: 'no way' } })
})
