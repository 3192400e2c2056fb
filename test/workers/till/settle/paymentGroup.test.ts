import { expect, test } from 'bun:test'
import { encodeFunctionResult, multicall3Abi } from 'viem'
import { GROUP_MAX, groupGas, readGroup } from '../../../../workers/till/settle/paymentGroup.ts'

test('the gas limit of a payment group (one shared transaction) grows with the number of payments, and a group has at most 64 payments', () => {
  expect([groupGas(0), groupGas(1), groupGas(GROUP_MAX)]).toEqual([80_000n, 160_000n, 5_200_000n])
  expect(GROUP_MAX).toBe(64)
  expect(() => groupGas(GROUP_MAX + 1)).toThrow('a group of 65 payments')
})

test('the result of a payment group’s simulation is read only if the result has one entry for each payment', () => {
  const entries = [
    { success: true, returnData: '0x' },
    { success: false, returnData: '0xab' },
  ] as const
  const result = encodeFunctionResult({
    abi: multicall3Abi,
    functionName: 'aggregate3',
    result: entries,
  })
  expect(readGroup(result, 2)).toEqual(entries)
  for (const [read, members] of [
    [result, 1],
    [result, 3],
    ['0x', 2],
    ['0xab', 2],
    [null, 2],
    [7, 2],
  ] as const) {
    expect([read, members, readGroup(read, members)]).toEqual([read, members, null])
  }
})
