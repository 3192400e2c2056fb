/** Wallet contracts (ERC-1271) that take any signature, and burn the gas wallet's gas when it suits them. */
import { type Address, concat, type Hex, numberToHex, size, toHex } from 'viem'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { DevnetClient } from '../../../workers/devnet/contracts.ts'
import { waitFor } from '../waitFor.ts'
import { fund, headerOf, pay, type TestTill } from './till.ts'

/** Answers 0x1626ba7e. */
const ACCEPT: Hex = '0x631626ba7e60e01b60005260206000f3'
/** INVALID takes all gas of the call. */
const BURN: Hex = '0xfe'

/** 23 bytes: accepts while GASPRICE is 0, as in a call without fees, and burns otherwise. */
export const FREE_CALL_ONLY: Hex = concat(['0x3a15600657', BURN, '0x5b', ACCEPT])

/** Accepts always. The bytes behind the code make its hash another one. */
export const acceptAll = (variant = 0): Hex =>
  concat([ACCEPT, variant === 0 ? '0x' : numberToHex(variant, { size: 1 })])

/** The code of {@link acceptAll} after a change of heart. */
const burnAll: Hex = BURN

/** Accepts while less gas is left than `gas`, and burns otherwise. */
export const acceptBelow = (gas: number): Hex =>
  concat(['0x62', toHex(gas, { size: 3 }), '0x5a10600a57', BURN, '0x5b', ACCEPT])

/** Creation code of any code. */
export const creationOf = (code: Hex): Hex =>
  concat([
    '0x60',
    toHex(size(code), { size: 1 }),
    '0x600c60003960',
    toHex(size(code), { size: 1 }),
    '0x6000f3',
    code,
  ])

/** Deploys a wallet with this code, and funds it. */
export async function deployCode(client: DevnetClient, code: Hex): Promise<Address> {
  const account = DEVNET_ACCOUNTS.tokenOwner.address
  const hash = await client.sendTransaction({ account, chain: null, data: creationOf(code) })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  if (contractAddress == null) throw new Error('no wallet')
  await fund(client, contractAddress, 1_000_000n)
  return contractAddress
}

/** A payment of a wallet with a signature that no account can have made. */
export async function payFromContract(wallet: Address): Promise<string> {
  const { authorization } = await pay({ from: wallet })
  return headerOf(authorization, `0x${'ab'.repeat(66)}`)
}

/** Redeems, and lets the wallet burn in the block though its simulation passed. */
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
