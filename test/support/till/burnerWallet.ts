/**
 * Makes smart wallets (ERC-1271) that accept any signature as valid. On command of the test, they use up all the gas,
 * for which the service's gas wallet pays.
 */
import { type Address, concat, type Hex, numberToHex, size, toHex } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { DevnetClient } from '../../../workers/devnet/contracts.ts'
import { waitFor } from '../waitFor.ts'
import { fund, headerOf, pay, type TestTill } from './till.ts'

/** Holds EVM code that returns the magic value 0x1626ba7e of ERC-1271. */
const ACCEPT: Hex = '0x631626ba7e60e01b60005260206000f3'
/** Holds the EVM instruction INVALID, which uses up all gas of the call. */
const BURN: Hex = '0xfe'

/**
 * Holds the contract code of a wallet that accepts a signature only while GASPRICE is 0, as in a simulated call without
 * fees. Otherwise, the wallet uses up all gas.
 */
export const FREE_CALL_ONLY: Hex = concat(['0x3a15600657', BURN, '0x5b', ACCEPT])

/**
 * Makes the contract code of a wallet that always accepts a signature. Each variant has different bytes after its code,
 * and so a different code hash.
 */
export const acceptAll = (variant = 0): Hex =>
  concat([ACCEPT, variant === 0 ? '0x' : numberToHex(variant, { size: 1 })])

/**
 * Holds contract code that uses up all gas. This code replaces {@link acceptAll} when the test wallet begins to use up
 * gas.
 */
const burnAll: Hex = BURN

/** Makes a wallet that accepts a signature if less than `gas` gas is left, and otherwise uses up all remaining gas. */
export const acceptBelow = (gas: number): Hex =>
  concat(['0x62', toHex(gas, { size: 3 }), '0x5a10600a57', BURN, '0x5b', ACCEPT])

/** Returns the creation code that deploys the given contract code. */
export const creationOf = (code: Hex): Hex =>
  concat([
    '0x60',
    toHex(size(code), { size: 1 }),
    '0x600c60003960',
    toHex(size(code), { size: 1 }),
    '0x6000f3',
    code,
  ])

/** Deploys a wallet contract with the given code, and funds the wallet. */
export async function deployCode(client: DevnetClient, code: Hex): Promise<Address> {
  const account = DEVNET_ACCOUNTS.tokenOwner.address
  const hash = await client.sendTransaction({ account, chain: null, data: creationOf(code) })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  if (contractAddress == null) throw new Error('no wallet')
  await fund(client, contractAddress, 1_000_000n)
  return contractAddress
}

/**
 * Returns the header of a payment by a wallet contract. No private key could have made its signature.
 */
export async function payFromContract(wallet: Address): Promise<string> {
  const { authorization } = await pay({ from: wallet })
  return headerOf(authorization, `0x${'ab'.repeat(66)}`)
}

/** Redeems a payment whose simulation succeeds, but whose wallet uses up all gas when the payment is in a block. */
export async function burnInBlock<Answer>(
  till: Pick<TestTill, 'client'>,
  wallet: Address,
  redeem: () => Promise<Answer>,
): Promise<Answer & { txHash: Hex }> {
  const { client } = till
  await client.setAutomine(false)
  try {
    const answer = redeem()
    await waitFor('the transaction in the mempool', async () => {
      const { pending } = await client.getTxpoolStatus()
      return pending > 0 ? true : null
    })
    const code = await client.getCode({ address: wallet })
    await client.setCode({ address: wallet, bytecode: burnAll })
    await client.mine({ blocks: 1 })
    const { transactions } = await client.getBlock()
    const result = await answer
    await client.setCode({ address: wallet, bytecode: code! })
    return { ...result, txHash: transactions[0]! }
  } finally {
    await client.setAutomine(true)
  }
}
