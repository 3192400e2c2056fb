/** Reads the contract code of a payer, because the gas wallet pays for running the code of a contract wallet. */
import { type Address, concat, type Hex, keccak256, numberToHex, size } from 'viem'
import type { Transfer, WalletDeployment } from '../../../shared/till/authorization.ts'
import { readCode, readFutureCode } from '../chain/chain.ts'
import type { Rpc } from '../chain/rpc.ts'

type Payer = Pick<Transfer, 'payer' | 'deployment'>

/**
 * Returns the hash of each payer's contract code in order, and `null` for an account without code. For an undeployed
 * wallet, returns the hash of the code that the wallet factory would deploy. Wallets with the same code at different
 * addresses run the same program.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function payerCodes(
  rpc: Rpc,
  payers: readonly Payer[],
  block: bigint,
): Promise<(Hex | null)[]> {
  const codes = await readCode(
    rpc,
    payers.map(({ payer }) => payer),
    block,
  )
  return Promise.all(
    payers.map(async ({ payer, deployment }, n) => {
      const code = codes[n]!
      if (code !== '0x') return keccak256(code)
      if (deployment === null) return null
      const future = await readFutureCode(rpc, futureCodeCall(payer, deployment), block)
      // Some wallet factories deploy a wallet only for Multicall3 as the caller, so the code of such a wallet cannot be
      // read in advance. The hash of the call data for the factory then replaces the hash of the code.
      return future ?? keccak256(deployment.factoryData)
    }),
  )
}

/**
 * Returns contract creation code that calls the wallet factory and returns the hash of the code at the wallet's address
 * (EXTCODEHASH).
 */
function futureCodeCall(wallet: Address, { factory, factoryData }: WalletDeployment): Hex {
  const length = numberToHex(size(factoryData), { size: 2 })
  const program = (at: Hex): Hex =>
    concat([
      // This part of the EVM program is CODECOPY(0, at, length).
      ...(['0x61', length, '0x61', at, '0x600039'] as const),
      // This part of the EVM program is CALL(GAS, factory, 0, 0, length, 0, 0), POP.
      ...(['0x6000600061', length, '0x6000600073', factory, '0x5af150'] as const),
      // This part of the EVM program is MSTORE(0, EXTCODEHASH(wallet)), RETURN(0, 32).
      ...(['0x73', wallet, '0x3f60005260206000f3'] as const),
    ])
  const start = size(program('0x0000'))
  return concat([program(numberToHex(start, { size: 2 })), factoryData])
}
