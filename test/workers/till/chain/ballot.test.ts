import { expect, test } from 'bun:test'
import { keyOfAnswer } from '../../../../workers/till/chain/ballot.ts'
import type { RpcAnswer } from '../../../../workers/till/chain/rpc.ts'

const ok = (result: unknown): RpcAnswer => ({ ok: true, result })
const error = (code: number, message: string, data?: unknown): RpcAnswer => ({
  ok: false,
  code,
  message,
  data,
})
const BLOCK = { number: '0x1', hash: '0xAB', parentHash: '0x0', timestamp: '0x2' }
const RECEIPT = { transactionHash: '0x1', status: '0x1', blockNumber: '0x2', blockHash: '0x3' }
const LOG = { address: '0xAA', topics: ['0x1'], data: '0x', logIndex: '0x0' }
const EVENT = { ...LOG, transactionHash: '0x1', blockNumber: '0x2' }

test('if a chain node has not seen a block or a receipt, its answer counts as the vote "unseen"', () => {
  for (const method of ['eth_getBlockByNumber', 'eth_getTransactionReceipt']) {
    expect([method, keyOfAnswer(method, ok(null))]).toEqual([method, 'unseen'])
  }
  expect(keyOfAnswer('eth_call', ok(null))).not.toBe('unseen')
})

test('a fault of a chain node is no vote in the quorum, but a revert is a vote', () => {
  for (const [answer, isVote] of [
    [error(3, 'no word of it'), true],
    [error(-32000, 'execution reverted'), true],
    [error(-32000, 'out of gas'), true],
    [error(-32603, 'EVM error OutOfGas'), true],
    [error(-32000, 'header not found'), false],
    [error(429, 'too many requests'), false],
  ] as const) {
    expect([answer, keyOfAnswer('eth_call', answer) !== null]).toEqual([answer, isVote])
  }
  expect(keyOfAnswer('eth_getLogs', ok(null))).toBeNull()
})

test('the answers of two chain nodes count as the same vote if all fields that the service reads are equal', () => {
  for (const [method, one, other, isSame] of [
    ['eth_getBlockByNumber', ok(BLOCK), ok({ ...BLOCK, hash: '0xab', size: '0x9' }), true],
    ['eth_getBlockByNumber', ok(BLOCK), ok({ ...BLOCK, hash: '0xac' }), false],
    ['eth_getBlockByNumber', ok(BLOCK), ok({ ...BLOCK, baseFeePerGas: '0x1' }), false],
    ['eth_getBlockByNumber', ok('0x1'), ok({}), true],
    ['eth_getBlockByNumber', ok(undefined), ok({}), true],
    ['eth_getTransactionReceipt', ok(RECEIPT), ok({ ...RECEIPT, logs: [] }), true],
    ['eth_getTransactionReceipt', ok(RECEIPT), ok({ ...RECEIPT, status: '0x0' }), false],
    ['eth_getTransactionReceipt', ok(RECEIPT), ok({ ...RECEIPT, logs: [LOG] }), false],
    [
      'eth_getTransactionReceipt',
      ok({ ...RECEIPT, logs: [LOG] }),
      ok({ ...RECEIPT, logs: [{ ...LOG, address: '0xaa', removed: false }] }),
      true,
    ],
    ['eth_getLogs', ok([EVENT, { ...EVENT, logIndex: '0x1' }]), ok([EVENT]), false],
    [
      'eth_getLogs',
      ok([EVENT, { ...EVENT, logIndex: '0x1' }]),
      ok([{ ...EVENT, logIndex: '0x1' }, EVENT]),
      true,
    ],
    ['eth_getLogs', ok([null]), ok([{}]), true],
    ['eth_call', ok('0xAB'), ok('0xab'), true],
    ['eth_call', ok('0xab'), ok('0xac'), false],
    ['eth_call', error(3, 'x', '0xAB'), error(-32000, 'reverted', '0xab'), true],
    ['eth_call', error(3, 'x', '0xab'), error(3, 'x', '0xac'), false],
    ['eth_call', error(3, 'x', '0xab'), ok('0xab'), false],
  ] as [string, RpcAnswer, RpcAnswer, boolean][]) {
    const [left, right] = [keyOfAnswer(method, one), keyOfAnswer(method, other)]
    expect([method, one, other, left === right]).toEqual([method, one, other, isSame])
  }
})
