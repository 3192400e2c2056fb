import { describe, expect, test } from 'bun:test'
import { getAddress } from 'viem'
import {
  formatUsdc,
  parseUsdc,
  USDC_AMOUNT_PATTERN,
  USDC_NETWORKS,
  UsdcAmountError,
  usdcNetwork,
  usdcNetworkOfChainId,
} from '../../../shared/till/usdc.ts'

describe('parseUsdc converts a decimal amount of USDC to atomic units, and refuses any other text', () => {
  test.each([
    ['0.01', 10_000n],
    ['1', 1_000_000n],
    ['1.0', 1_000_000n],
    ['0.000001', 1n],
    // The product 4.02 * 1e6 is 4019999.9999999995 in floating point, so parseUsdc must not compute with floating point
    // (coinbase/x402 #795).
    ['4.02', 4_020_000n],
    ['1.1', 1_100_000n],
    ['9007199254.740993', 9_007_199_254_740_993n],
    ['999999999999.999999', 999_999_999_999_999_999n],
  ])('the amount %s is read as %s atomic units', (amount, atomic) => {
    expect(parseUsdc(amount)).toBe(atomic)
    expect(USDC_AMOUNT_PATTERN.test(amount)).toBe(true)
  })

  test.each([
    '',
    '0',
    '0.0',
    '0.000000',
    '-1',
    '+1',
    '01',
    '00.1',
    '.5',
    '1.',
    '1.0000001',
    '1e-7',
    '1E3',
    '1,5',
    '1 000',
    ' 1',
    '1\n',
    '0x10',
    '١',
    'NaN',
    'Infinity',
    '$1',
    '1000000000000',
    '9'.repeat(65),
    '9'.repeat(1_000_000),
  ])('parseUsdc refuses the amount %p', (amount) => {
    expect(() => parseUsdc(amount)).toThrow(UsdcAmountError)
  })
})

describe('formatUsdc writes atomic units as a decimal amount of USDC', () => {
  test.each([
    [0n, '0'],
    [1n, '0.000001'],
    [10_000n, '0.01'],
    [1_000_000n, '1'],
    [1_100_000n, '1.1'],
    [10n ** 24n + 1n, '1000000000000000000.000001'],
  ])('the amount of %s atomic units is written as %s', (atomic, text) => {
    expect(formatUsdc(atomic)).toBe(text)
  })

  test('formatUsdc returns an amount that parseUsdc reads as the same number', () => {
    for (let exponent = 0n; exponent < 18n; exponent++) {
      for (const atomic of [10n ** exponent, 10n ** (exponent + 1n) - 1n, 7n * 10n ** exponent]) {
        expect(parseUsdc(formatUsdc(atomic))).toBe(atomic)
      }
    }
  })

  test('formatUsdc refuses a negative amount', () => {
    expect(() => formatUsdc(-1n)).toThrow(RangeError)
  })
})

describe('the service finds the USDC contract of a network by the network’s name or chain id', () => {
  test('a network of USDC is found only by its exact name or chain id', () => {
    expect(usdcNetwork('base')?.chainId).toBe(8453)
    expect(usdcNetworkOfChainId(84532)?.network).toBe('base-sepolia')
    for (const name of ['eip155:8453', 'Base', '', 'constructor', '__proto__', 'toString']) {
      expect(usdcNetwork(name)).toBeUndefined()
    }
    expect(usdcNetworkOfChainId(1)).toBeUndefined()
  })

  test('the USDC networks have checksummed addresses, because clients of x402 version 1 compare addresses as strings', () => {
    for (const { usdcAddress, chainId, caip2 } of Object.values(USDC_NETWORKS)) {
      expect(getAddress(usdcAddress.toLowerCase())).toBe(usdcAddress)
      expect(caip2).toBe(`eip155:${chainId}`)
    }
  })
})
