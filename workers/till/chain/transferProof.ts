/** Proves a transfer by the events of the token, if the chain node cannot send the receipt of the transaction. */
import { type Address, pad } from 'viem'
import { z } from 'zod'
import { type AuthorizationEvent, hex, read, readBlock } from './chain.ts'
import { type Rpc, RpcTrouble } from './rpc.ts'
import { logSchema, type Receipt } from './transactionReceipts.ts'
import { AUTHORIZATION_USED, TRANSFER } from './transfer.ts'

/** Holds the parts of a transaction receipt that prove a transfer. */
export type TransferProof = Pick<Receipt, 'transactionHash' | 'blockNumber' | 'blockHash' | 'logs'>

const eventsSchema = z.array(z.object({ ...logSchema.shape, transactionHash: hex }))

/**
 * Reads the events with which the token logged the use of an authorization and its transfer. Only a transaction that
 * succeeded has events. The hash of the block ties the events to the block, even if a reorganisation replaces it.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function readTransferProof(
  rpc: Rpc,
  { payer, txHash, blockNumber }: AuthorizationEvent,
  asset: Address,
): Promise<TransferProof> {
  const block = await readBlock(rpc, blockNumber)
  if (block === null) throw new RpcTrouble('the block of the transfer is not found yet')
  const topics = [[AUTHORIZATION_USED, TRANSFER], pad(payer)]
  const filter = { address: asset, topics, blockHash: block.hash }
  const events = read(eventsSchema, await rpc.call('eth_getLogs', [filter]), 'eth_getLogs')
  return {
    transactionHash: txHash,
    blockNumber,
    blockHash: block.hash,
    logs: events
      .filter(({ transactionHash }) => transactionHash === txHash)
      .toSorted((one, other) => Number(one.logIndex - other.logIndex)),
  }
}
