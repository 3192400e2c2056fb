/**
 * Finds out how a payment authorization was used. Any transaction may have settled it, or the payer may have cancelled
 * it, possibly before this service stored the payment.
 */
import type { Hex } from 'viem'
import type { Payment } from '../../../sql/till/payments/payments.ts'
import {
  failPayment,
  type MinedTransaction,
  recordSettlements,
} from '../../../sql/till/settle/settlements.ts'
import { isGroup, isTransactionOf } from '../../../sql/till/watch/openTransactions.ts'
import { findAuthorizationEvent, isUsed, readBlock } from '../chain/chain.ts'
import { type KnownChain, refreshHead } from '../chain/chainView.ts'
import { settlementOf } from '../chain/receipts.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { feeOf, type Receipt, readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { readTransfers, transferIndex } from '../chain/transfer.ts'
import { readTransferProof } from '../chain/transferProof.ts'

/**
 * Sets how many blocks before the moment at which the service stored a payment the search for the use of its
 * authorization begins.
 */
const SEARCH_MARGIN = 5n
/**
 * Limits the number of blocks in which the service searches for the earlier transaction that used a payment
 * authorization. The hash of that transaction only explains the refusal, so one request must be enough. When ten
 * requests were allowed, a payer who cancelled many authorizations made the payments of all others wait for 20 seconds.
 */
const NAMED_BLOCKS = 2_000n
/**
 * Limits how far back the service searches for the use of an authorization. This search is needed if the chain node has
 * deleted the state of the block at which the service stored the payment. Each attempt searches the next NAMED_BLOCKS
 * blocks, so that 500 attempts cover three weeks on Base.
 */
const SEARCHES_MAX = 500

/**
 * Settles a payment by any transaction that used its authorization, because anyone may call
 * `transferWithAuthorization`. If the authorization was used before this service stored the payment, the payment is
 * refused, because the money paid for a different request.
 * @throws {RpcTrouble} if the chain node does not respond. Nothing is decided about the payment in this case.
 */
export async function examineUsed(chain: KnownChain, payment: Payment): Promise<void> {
  const claimHead = payment.claimHead ?? chain.head.number
  const early = payment.txHash === null ? await wasUsedAt(chain, payment, claimHead) : null
  if (early === true) {
    return refuseUsedBefore(chain, payment, await findEarlier(chain, payment, claimHead))
  }
  await refreshHead(chain)
  const event = await findAuthorizationEvent(chain.rpc, payment, {
    from: claimHead - SEARCH_MARGIN,
    to: chain.head.number,
  })
  // After a reorganisation, this payment's own transaction may be in a block that is older than the stored payment. In
  // contrast, a transaction of another sender in such a block paid for another request. This is true even if this
  // service has also signed a transaction, because it may have asked a chain node that lags behind.
  const isOwn = event !== null && (await isTransactionOf(chain.pool, event.txHash, payment.id))
  // If no head block was stored together with the payment, only the time of the event's block tells whether the event
  // came before the payment.
  const needsEvent = isOwn || (payment.txHash !== null && payment.claimHead === null)
  const wasUsed = needsEvent ? false : (early ?? (await wasUsedAt(chain, payment, claimHead)))
  if (event === null) {
    const earlier = wasUsed === false ? null : await findLongAgo(chain, payment, claimHead)
    if (earlier === null || (await isTransactionOf(chain.pool, earlier, payment.id))) {
      throw new RpcTrouble('the authorization is used, its event is not found yet')
    }
    return refuseUsedBefore(chain, payment, earlier)
  }
  if (wasUsed === true) return refuseUsedBefore(chain, payment, event.txHash)
  if (event.kind === 'canceled') return refuse(chain, payment, 'the authorization was canceled')
  const [receipt] = await readStrangersReceipts(chain.rpc, [event.txHash])
  if (receipt === null) throw new RpcTrouble('the receipt of the transfer is not found yet')
  const proof = receipt ?? (await readTransferProof(chain.rpc, event, payment.asset))
  const logIndex = transferIndex(readTransfers(proof.logs, payment.asset), payment)
  if ((receipt !== undefined && receipt.status !== 1n) || logIndex === null) {
    if (receipt === undefined) throw new RpcTrouble('the transfer is not found in its block yet')
    return refuse(chain, payment, 'the authorization was used without this transfer')
  }
  if (!isOwn && (await isOlder(chain, proof.blockNumber, payment))) {
    return refuseUsedBefore(chain, payment, event.txHash)
  }
  await recordSettlements(chain.pool, {
    settlements: [settlementOf(payment, proof, logIndex, chain.receiptKey)],
    mined: receipt === undefined ? [] : await minedAlone(chain, receipt),
  })
}

/**
 * Returns the transaction that settled one payment. A payment of a group is left to the watcher (which polls the
 * chain), because the watcher records the transaction together with all payments of the group.
 */
async function minedAlone(chain: KnownChain, receipt: Receipt): Promise<MinedTransaction[]> {
  const { transactionHash: hash, blockNumber, blockHash, gasUsed } = receipt
  if (await isGroup(chain.pool, hash)) return []
  return [{ hash, succeeded: true, blockNumber, blockHash, gasUsed, feeWei: feeOf(receipt) }]
}

async function wasUsedAt(
  chain: KnownChain,
  payment: Payment,
  block: bigint,
): Promise<boolean | 'unknown'> {
  try {
    return await isUsed(chain.rpc, payment, block)
  } catch (error) {
    // The chain node has deleted the state of the block at which the service stored the payment, so the events of the
    // token contract must decide.
    if (error instanceof RpcTrouble) return 'unknown'
    throw error
  }
}

/**
 * Searches the blocks before the service stored a payment for the transaction that used its authorization. Each attempt
 * searches the newest of these blocks again, and one part of the older blocks. Only an event in these blocks proves
 * that the authorization was used before, because a chain node may lack a later event.
 */
async function findLongAgo(
  chain: KnownChain,
  payment: Payment,
  claimHead: bigint,
): Promise<Hex | null> {
  for (const part of new Set([0n, BigInt(payment.troubleCount % SEARCHES_MAX)])) {
    const to = claimHead - NAMED_BLOCKS * part
    if (to < 0n) continue
    const found = await findEvent(chain, payment, { from: to - NAMED_BLOCKS + 1n, to })
    if (found !== null) return found
  }
  return null
}

async function findEvent(
  chain: KnownChain,
  payment: Payment,
  range: { from: bigint; to: bigint },
): Promise<Hex | null> {
  return (await findAuthorizationEvent(chain.rpc, payment, range))?.txHash ?? null
}

/**
 * Tells whether a block is older than the moment at which this service stored a payment. The head block that was stored
 * with the payment can lag behind the real head of the chain. In this case the time of the block, in whole seconds, is
 * compared with the time of the payment.
 */
async function isOlder(chain: KnownChain, number: bigint, payment: Payment): Promise<boolean> {
  if (payment.claimHead !== null && number <= payment.claimHead) return true
  const block = await readBlock(chain.rpc, number)
  if (block === null) throw new RpcTrouble('the block of the transfer is not found yet')
  return block.timestamp < BigInt(Math.floor(payment.createdAt.getTime() / 1000))
}

/**
 * Returns the hash of the transaction that used a payment authorization before this service stored the payment. Returns
 * `null` if no such transaction is found. After a restore from a backup, this service itself may have sent a
 * transaction that the backup does not contain.
 */
async function findEarlier(
  chain: KnownChain,
  payment: Payment,
  claimHead: bigint,
): Promise<Hex | null> {
  const range = { from: claimHead - NAMED_BLOCKS + 1n, to: claimHead }
  try {
    return await findEvent(chain, payment, range)
  } catch (error) {
    // A payment whose authorization was used earlier is refused, even if the earlier transaction is not found, because
    // the hash of that transaction only explains the refusal.
    if (error instanceof RpcTrouble) return null
    throw error
  }
}

function refuseUsedBefore(chain: KnownChain, payment: Payment, txHash: Hex | null): Promise<void> {
  const by = txHash === null ? '' : `, by ${txHash}`
  return refuse(chain, payment, `the authorization was used before${by}`)
}

async function refuse(chain: KnownChain, payment: Payment, detail: string): Promise<void> {
  await failPayment(chain.pool, {
    paymentId: payment.id,
    stage: payment.txHash === null ? 'verify' : 'settle',
    reason: 'invalid_exact_evm_nonce_already_used',
    detail,
    cannotPay: true,
  })
}
