import type { NetworkName } from './usdc.ts'

/**
 * Holds the network name for the chain id of the devnet. The devnet never uses the chain id of Base, because a
 * signature for Base would be worth money.
 */
export const DEVNET_NETWORK: NetworkName = 'base-sepolia'

/**
 * Lists accounts of the mnemonic `test test … junk`, which anvil unlocks. These accounts are worthless on every real
 * chain.
 */
export const DEVNET_ACCOUNTS = {
  gasWallet: {
    address: '0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266',
    privateKey: '0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80',
  },
  payer: {
    address: '0x70997970C51812dc3A010C7d01b50e0d17dc79C8',
    privateKey: '0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d',
  },
  payTo: { address: '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC' },
  /**
   * Holds the account that may upgrade the proxy contract of the USDC token. The proxy contract refuses all other calls
   * from this account.
   */
  proxyAdmin: { address: '0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f' },
  /**
   * Holds the account that deployed the token contract and has all roles of the contract: owner, minter, pauser and
   * blacklister.
   */
  tokenOwner: { address: '0xa0Ee7A142d267C1f36714E4a8F75612F20a79720' },
} as const
