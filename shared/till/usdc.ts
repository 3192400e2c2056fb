/**
 * Converts USDC amounts, and lists the supported chains.
 *
 * Terminology: an *amount* is a decimal string in USDC ("0.01"). An *atomic amount* is a bigint of 10^-6 USDC (10000n),
 * the unit of the token contract. The code never holds money in a floating-point number.
 */
import type { Address } from 'viem'

/**
 * Matches the format of an amount in USDC, such as `0.01`. The function {@link parseUsdc} checks the limits of an
 * amount (above 0, 18 digits).
 */
export const USDC_AMOUNT_PATTERN = /^(0|[1-9]\d*)(\.\d{1,6})?$/

const DECIMALS = 6
/**
 * Sets the maximum number of digits of an atomic amount. x402 v1 clients refuse a `value` of more than 18 characters
 * (docs/contract.md §6).
 */
const ATOMIC_DIGITS_MAX = 18
const AMOUNT_ATOMIC_MAX = 10n ** BigInt(ATOMIC_DIGITS_MAX) - 1n

export type NetworkName = 'base' | 'base-sepolia'

/**
 * Describes one supported chain with its USDC contract. The EIP-712 domain name `eip712Name` is different on each
 * chain.
 */
export type UsdcNetwork = {
  readonly network: NetworkName
  readonly chainId: number
  /**
   * Holds the CAIP-2 name of the chain, for x402 version 2 and for signed receipts. A challenge of x402 version 1 must
   * not contain this name, because the client x402-fetch throws an error on it.
   */
  readonly caip2: `eip155:${number}`
  /**
   * Holds the address of the USDC contract in EIP-55 form, because clients of x402 version 1 compare the address as a
   * string with their own copy.
   */
  readonly usdcAddress: Address
  readonly eip712Name: string
  readonly eip712Version: string
}

/**
 * Lists the canonical USDC deployments by Circle. The EIP-712 domain names equal the results of the contracts' function
 * `name()`.
 */
export const USDC_NETWORKS: Readonly<Record<NetworkName, UsdcNetwork>> = {
  base: {
    network: 'base',
    chainId: 8453,
    caip2: 'eip155:8453',
    usdcAddress: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913',
    eip712Name: 'USD Coin',
    eip712Version: '2',
  },
  'base-sepolia': {
    network: 'base-sepolia',
    chainId: 84532,
    caip2: 'eip155:84532',
    usdcAddress: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    eip712Name: 'USDC',
    eip712Version: '2',
  },
}

/**
 * Reports an amount that is no valid price. The error's `message` states the format of amounts, and the service may
 * show the message to the caller.
 */
export class UsdcAmountError extends Error {
  override readonly name = 'UsdcAmountError'
}

/**
 * Returns the chain of an x402 v1 network name.
 *
 * @param name is a network name of x402 version 1, such as `base-sepolia`. For a CAIP-2 name the function returns
 * undefined.
 * @returns undefined if the name is not supported.
 */
export function usdcNetwork(name: string): UsdcNetwork | undefined {
  return Object.hasOwn(USDC_NETWORKS, name) ? USDC_NETWORKS[name as NetworkName] : undefined
}

/**
 * Returns the chain of a network name in either spelling: the name of x402 version 1 or the CAIP-2 name of version 2.
 *
 * @example usdcNetworkOf('eip155:84532')?.network // 'base-sepolia'
 */
export function usdcNetworkOf(text: string): UsdcNetwork | undefined {
  return (
    usdcNetwork(text) ?? Object.values(USDC_NETWORKS).find((candidate) => candidate.caip2 === text)
  )
}

/**
 * Returns the chain of a chain id, such as the result of `eth_chainId`.
 *
 * @returns undefined if the chain is not supported.
 */
export function usdcNetworkOfChainId(chainId: number): UsdcNetwork | undefined {
  return Object.values(USDC_NETWORKS).find((candidate) => candidate.chainId === chainId)
}

/**
 * Parses a decimal price in USDC.
 *
 * @param amount is a text such as `0.01`, without sign, exponent, comma, blank or leading zero.
 * @returns the atomic units, such as `10000n`. The parsed price is from 1n to 999999999999999999n atomic units.
 * @throws UsdcAmountError if the amount is malformed, zero or too large.
 */
export function parseUsdc(amount: string): bigint {
  // A valid amount has at most 12 digits before the point. Without a limit on the length of the text, BigInt() could
  // get megabytes of digits to parse.
  if (amount.length > 64 || !USDC_AMOUNT_PATTERN.test(amount)) {
    throw new UsdcAmountError(
      'amount must be a decimal USDC string with at most 6 decimals, such as "0.01"',
    )
  }
  const [whole = '0', fraction = ''] = amount.split('.')
  const amountAtomic = BigInt(whole + fraction.padEnd(DECIMALS, '0'))
  if (amountAtomic === 0n) throw new UsdcAmountError('amount must be above 0')
  if (amountAtomic > AMOUNT_ATOMIC_MAX) {
    throw new UsdcAmountError('amount must be below 1000000000000 USDC')
  }
  return amountAtomic
}

/**
 * Writes atomic units as a decimal number of USDC in the shortest form. The function is the inverse of {@link
 * parseUsdc}.
 *
 * @param amountAtomic is the amount in atomic units, which must not be negative. It may be a sum above the maximum of a
 * single price.
 * @returns a text such as `0.01` for 10000n, `0` for 0n, `3` for 3000000n.
 * @throws RangeError on a negative amount.
 */
export function formatUsdc(amountAtomic: bigint): string {
  if (amountAtomic < 0n) throw new RangeError(`amountAtomic must not be negative: ${amountAtomic}`)
  const digits = amountAtomic.toString().padStart(DECIMALS + 1, '0')
  const whole = digits.slice(0, -DECIMALS)
  const fraction = digits.slice(-DECIMALS).replace(/0+$/, '')
  return fraction === '' ? whole : `${whole}.${fraction}`
}
