/**
 * Makes the JSON-RPC calls of the till (the payment part of the service) and decodes their results. If the chain node
 * does not respond, every function in this file throws RpcTrouble.
 */
import { type Address, type Hex, numberToHex, pad } from 'viem'
import { z } from 'zod'
import type { Transfer } from '../../../shared/till/authorization.ts'
import { type UsdcNetwork, usdcNetworkOfChainId } from '../../../shared/till/usdc.ts'
import type { BlockRef } from '../../../sql/till/settle/settlements.ts'
import { type Rpc, type RpcAnswer, RpcTrouble } from './rpc.ts'
import {
  AUTHORIZATION_CANCELED,
  AUTHORIZATION_USED,
  authorizationStateData,
  balanceData,
} from './transfer.ts'

export const quantity = z
  .string()
  .regex(/^0x[0-9a-f]+$/i)
  .transform((text) => BigInt(text))
export const hex = z
  .string()
  .regex(/^0x[0-9a-f]*$/i)
  .transform((text) => text.toLowerCase() as Hex)

const blockSchema = z.object({
  number: quantity,
  hash: hex,
  parentHash: hex,
  timestamp: quantity,
  baseFeePerGas: quantity.optional(),
})

/** Describes the header of a block. The time of the block is in Unix seconds, and its base fee is in wei per gas. */
export type Block = z.output<typeof blockSchema>

const eventSchema = z.object({
  topics: z.array(hex).min(3),
  transactionHash: hex,
  blockNumber: quantity,
})

/** Describes the 32 bytes that a call of the token contract returns. */
const word = z.string().regex(/^0x[0-9a-f]{64}$/i)

/** Checks the shape of a chain node's reply. @throws {RpcTrouble} if the reply does not match the schema. */
export function read<Output>(schema: z.ZodType<Output>, value: unknown, label: string): Output {
  const parsed = schema.safeParse(value)
  if (!parsed.success) throw new RpcTrouble(`${label}: the answer is malformed`)
  return parsed.data
}

/** Returns the result in a chain node's reply. @throws {RpcTrouble} if the node's reply has no result. */
export function resultOf(answer: RpcAnswer | undefined, label: string): unknown {
  if (answer?.ok) return answer.result
  throw new RpcTrouble(`${label}: ${answer?.message ?? 'no answer'}`)
}

export const tagOf = (block: bigint | 'latest' | 'pending' | 'finalized') =>
  typeof block === 'bigint' ? numberToHex(block) : block

/**
 * Asks the RPC node for its chain id. @throws {RpcTrouble} if the RPC node does not respond. @returns the network of
 * the node, or the chain id if the chain is not supported.
 */
export async function readNetwork(rpc: Rpc): Promise<UsdcNetwork | number> {
  const chainId = Number(read(quantity, await rpc.call('eth_chainId', []), 'eth_chainId'))
  return usdcNetworkOfChainId(chainId) ?? chainId
}

/** Returns a block of the chain. Returns `null` if the chain node does not have the block. */
export async function readBlock(
  rpc: Rpc,
  block: bigint | 'latest' | 'finalized',
): Promise<Block | null> {
  const result = await rpc.call('eth_getBlockByNumber', [tagOf(block), false])
  return result === null ? null : read(blockSchema, result, 'eth_getBlockByNumber')
}

/**
 * Returns blocks of the chain by their numbers, in order, with `null` for a block that the chain node does not have.
 */
async function readBlocks(rpc: Rpc, numbers: readonly bigint[]): Promise<(Block | null)[]> {
  const answers = await rpc.batch(
    numbers.map((number) => ({ method: 'eth_getBlockByNumber', params: [tagOf(number), false] })),
  )
  return answers.map((answer) => {
    const result = resultOf(answer, 'eth_getBlockByNumber')
    return result === null ? null : read(blockSchema, result, 'eth_getBlockByNumber')
  })
}

/**
 * Compares stored blocks with the chain.
 * @returns the blocks of the chain at the heights of the stored blocks. The field `isReplaced` tells whether one of
 * these blocks has another hash than the stored block. A block that the chain node does not know does not count as
 * replaced.
 */
export async function compareBlocks(
  rpc: Rpc,
  stored: readonly BlockRef[],
): Promise<{ blocks: (Block | null)[]; isReplaced: boolean }> {
  const blocks = await readBlocks(
    rpc,
    stored.map(({ blockNumber }) => blockNumber),
  )
  const isReplaced = blocks.some(
    (block, n) => block !== null && block.hash !== stored[n]!.blockHash,
  )
  return { blocks, isReplaced }
}

/**
 * Finds the stored transactions whose block is still part of the chain. The hash of a block covers its transactions and
 * their results. Therefore an unchanged hash proves a stored result even if the chain node does not send the receipt.
 */
export async function findInSameBlock<Stored extends BlockRef>(
  rpc: Rpc,
  stored: readonly Stored[],
): Promise<Set<Stored>> {
  const { blocks } = await compareBlocks(rpc, stored)
  return new Set(stored.filter(({ blockHash }, n) => blocks[n]?.hash === blockHash))
}

/**
 * Returns three numbers for each address: the count of its used nonces, its next nonce after the transactions in the
 * node's pool, and its balance in wei. A chain node without a transaction pool returns the number of used nonces as the
 * next nonce.
 */
export async function readWallets(
  rpc: Rpc,
  addresses: readonly Address[],
): Promise<{ used: bigint; pooled: bigint; balanceWei: bigint }[]> {
  const answers = await rpc.batch(
    addresses.flatMap((address) => [
      { method: 'eth_getTransactionCount', params: [address, 'latest'] },
      { method: 'eth_getTransactionCount', params: [address, 'pending'] },
      { method: 'eth_getBalance', params: [address, 'latest'] },
    ]),
  )
  return addresses.map((_, n) => ({
    used: read(quantity, resultOf(answers[n * 3], 'nonce'), 'nonce'),
    pooled: read(quantity, resultOf(answers[n * 3 + 1], 'nonce'), 'nonce'),
    balanceWei: read(quantity, resultOf(answers[n * 3 + 2], 'balance'), 'balance'),
  }))
}

/** Returns the priority fee for block builders, in wei per gas, as the chain node suggests it. */
export async function readTip(rpc: Rpc): Promise<bigint> {
  return read(quantity, await rpc.call('eth_maxPriorityFeePerGas', []), 'eth_maxPriorityFeePerGas')
}

/**
 * Sends signed transactions to the chain node in order. @returns `null` for each transaction that the node accepts or
 * already knows, and the node's error for each other transaction.
 */
export async function sendRaw(rpc: Rpc, raws: readonly Hex[]): Promise<(string | null)[]> {
  const answers = await rpc.batch(
    raws.map((raw) => ({ method: 'eth_sendRawTransaction', params: [raw] })),
  )
  return answers.map((answer) =>
    answer.ok || /already (known|imported)|known transaction/i.test(answer.message)
      ? null
      : answer.message.slice(0, 200),
  )
}

/** Tells whether an address has code at the given block. */
export async function hasCode(rpc: Rpc, address: Address, block: bigint): Promise<boolean> {
  const [code] = await readCode(rpc, [address], block)
  return code !== '0x'
}

/** Returns the code of each address at the given block, in order. The value `0x` means that the address has no code. */
export async function readCode(
  rpc: Rpc,
  addresses: readonly Address[],
  block: bigint,
): Promise<Hex[]> {
  const answers = await rpc.batch(
    addresses.map((address) => ({ method: 'eth_getCode', params: [address, tagOf(block)] })),
  )
  return answers.map((answer) => read(hex, resultOf(answer, 'eth_getCode'), 'eth_getCode'))
}

/**
 * Runs contract creation code that returns a hash, without deploying a contract. Returns `null` if the contract
 * creation code returns no hash.
 */
export async function readFutureCode(rpc: Rpc, data: Hex, block: bigint): Promise<Hex | null> {
  const [answer] = await rpc.batch([{ method: 'eth_call', params: [{ data }, tagOf(block)] }])
  const hash = hex.safeParse(answer?.ok ? answer.result : null)
  return hash.success && /^0x(?!0{64})[0-9a-f]{64}$/.test(hash.data) ? hash.data : null
}

type Authorized = Pick<Transfer, 'asset' | 'payer' | 'nonce'>

/**
 * Names a block by its number or by its hash (EIP-1898). Only a hash names the same block at every chain node.
 */
type BlockPlace = bigint | { blockHash: Hex }

const placeOf = (block: BlockPlace) => (typeof block === 'bigint' ? tagOf(block) : block)

/** Tells for each payment authorization whether it is used or cancelled at the given block. */
export async function areUsed(
  rpc: Rpc,
  authorizations: readonly Authorized[],
  block: BlockPlace,
): Promise<boolean[]> {
  if (authorizations.length === 0) return []
  const answers = await rpc.batch(
    authorizations.map((one) => ({
      method: 'eth_call',
      params: [{ to: one.asset, data: authorizationStateData(one) }, placeOf(block)],
    })),
  )
  return answers.map(
    (answer) =>
      BigInt(read(word, resultOf(answer, 'authorizationState'), 'authorizationState')) !== 0n,
  )
}

/** Tells whether a payment authorization is used or cancelled at the given block. */
export async function isUsed(rpc: Rpc, authorization: Authorized, block: bigint): Promise<boolean> {
  const [used] = await areUsed(rpc, [authorization], block)
  return used!
}

/** Returns each address's balance of a token at the given block, in atomic units. */
export async function readBalances(
  rpc: Rpc,
  asset: Address,
  addresses: readonly Address[],
  block: bigint,
): Promise<bigint[]> {
  const answers = await rpc.batch(
    addresses.map((address) => ({
      method: 'eth_call',
      params: [{ to: asset, data: balanceData(address) }, tagOf(block)],
    })),
  )
  return answers.map((answer) => BigInt(read(word, resultOf(answer, 'balanceOf'), 'balanceOf')))
}

/** Limits how many blocks one `eth_getLogs` request searches, because many chain nodes refuse larger ranges. */
const SEARCH_BLOCKS = 2_000n

/** Describes the event that the token contract logs when a payment authorization is used or cancelled. */
export type AuthorizationEvent = {
  kind: 'used' | 'canceled'
  payer: Address
  nonce: Hex
  txHash: Hex
  blockNumber: bigint
}

/** Limits how many authorization nonces one `eth_getLogs` request searches. */
const SEARCH_NONCES = 50

/** Finds the events that used or cancelled payment authorizations of one token, between two blocks. */
export async function findAuthorizationEvents(
  rpc: Rpc,
  authorizations: readonly Authorized[],
  { from, to }: { from: bigint; to: bigint },
): Promise<AuthorizationEvent[]> {
  const found: AuthorizationEvent[] = []
  for (let n = 0; n < authorizations.length; n += SEARCH_NONCES) {
    const some = authorizations.slice(n, n + SEARCH_NONCES)
    const payers = [...new Set(some.map(({ payer }) => pad(payer)))]
    for (let start = from < 0n ? 0n : from; start <= to; start += SEARCH_BLOCKS) {
      const end = start + SEARCH_BLOCKS - 1n
      const result = await rpc.call('eth_getLogs', [
        {
          address: some[0]!.asset,
          topics: [
            [AUTHORIZATION_USED, AUTHORIZATION_CANCELED],
            payers,
            some.map(({ nonce }) => nonce),
          ],
          fromBlock: numberToHex(start),
          toBlock: numberToHex(end < to ? end : to),
        },
      ])
      for (const event of read(z.array(eventSchema), result, 'eth_getLogs')) {
        found.push({
          kind: event.topics[0] === AUTHORIZATION_USED ? 'used' : 'canceled',
          payer: `0x${event.topics[1]!.slice(-40)}`,
          nonce: event.topics[2]!,
          txHash: event.transactionHash,
          blockNumber: event.blockNumber,
        })
      }
    }
  }
  return found
}

/**
 * Finds the event that used or cancelled a payment authorization, between two blocks. Returns `null` if no event in
 * these blocks used or cancelled the authorization.
 */
export async function findAuthorizationEvent(
  rpc: Rpc,
  authorization: Authorized,
  blocks: { from: bigint; to: bigint },
): Promise<AuthorizationEvent | null> {
  const [event] = await findAuthorizationEvents(rpc, [authorization], blocks)
  return event ?? null
}
