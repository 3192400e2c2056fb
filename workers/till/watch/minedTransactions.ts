/** Records the outcomes of transactions if their nonce is used on the chain. */
import type { Hex } from 'viem'
import { findPayments, type Payment } from '../../../sql/till/payments/payments.ts'
import {
  type MinedTransaction,
  recordSettlements,
  type Settlement,
} from '../../../sql/till/settle/settlements.ts'
import { recordMisses } from '../../../sql/till/watch/misses.ts'
import type { OpenTransaction } from '../../../sql/till/watch/openTransactions.ts'
import { readCode } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { settlementOf } from '../chain/receipts.ts'
import { RpcTrouble } from '../chain/rpc.ts'
import { feeOf, type Receipt, readReceipts } from '../chain/transactionReceipts.ts'
import { readTransfers, transferIndex } from '../chain/transfer.ts'

/** Limits for how many payments one database transaction records the outcome. */
const PAYMENTS_MAX = 256

type Found = { transaction: OpenTransaction; receipt: Receipt }

/**
 * Records the outcomes of open transactions if their nonce is used on the chain. @returns true if at least one of these
 * transactions is in a block.
 */
export async function resolveUsed(
  chain: KnownChain,
  open: readonly OpenTransaction[],
): Promise<boolean> {
  let anyFound = false
  for (const some of inParts(open)) {
    const receipts = await readReceipts(
      chain.rpc,
      some.map((one) => one.hash),
    )
    const found = some.flatMap((transaction, n) => {
      const receipt = receipts[n]
      return receipt == null ? [] : [{ transaction, receipt }]
    })
    await settleFound(chain, found)
    const settledNonces = new Set(found.map(({ transaction }) => transaction.nonce))
    const missing = some.filter(({ nonce }) => !settledNonces.has(nonce))
    await recordMisses(chain.pool, { reverted: [], displaced: longMissing(chain, missing) })
    anyFound ||= found.length > 0
  }
  return anyFound
}

/**
 * Divides transactions into batches with a limited number of payments. Transactions with the same nonce stay in one
 * batch, because the chain accepts only one of these transactions.
 */
function inParts(open: readonly OpenTransaction[]): OpenTransaction[][] {
  const parts: OpenTransaction[][] = []
  let payments = 0
  for (const transaction of open) {
    const part = parts.at(-1)
    const isRival = part?.at(-1)?.nonce === transaction.nonce
    payments += transaction.paymentIds.length
    if (part !== undefined && (isRival || payments <= PAYMENTS_MAX)) part.push(transaction)
    else {
      parts.push([transaction])
      payments = transaction.paymentIds.length
    }
  }
  return parts
}

async function settleFound(chain: KnownChain, found: readonly Found[]): Promise<void> {
  if (found.length === 0) return
  const payments = await findPayments(
    chain.pool,
    found.flatMap(({ transaction }) => transaction.paymentIds),
  )
  const byId = new Map(payments.map((payment) => [payment.id, payment]))
  const settlements: Settlement[] = []
  const apart: string[] = []
  const done: MinedTransaction[] = []
  const reverted: MinedTransaction[] = []
  const suspects: Suspects[] = []
  for (const { transaction, receipt } of found) {
    chain.missingSinceMs.delete(transaction.hash)
    const members = transaction.paymentIds.flatMap((id) => byId.get(id) ?? [])
    const { settled, missed } = matchTransfers(chain, members, receipt)
    settlements.push(...settled)
    const { blockNumber, blockHash, gasUsed } = receipt
    const succeeded = receipt.status === 1n
    const feeWei = feeOf(receipt)
    const mined = { hash: transaction.hash, succeeded, blockNumber, blockHash, gasUsed, feeWei }
    const isGroup = transaction.paymentIds.length > 1
    if (isGroup && succeeded) apart.push(...missed.map(({ id }) => id))
    if (isGroup && missed.length > 0) {
      suspects.push({ payments: missed, blockNumber, hasReverted: !succeeded })
    }
    if (missed.length === 0 || (isGroup && succeeded)) done.push(mined)
    else reverted.push(mined)
  }
  const spoilers = await findSpoilers(chain, suspects)
  await recordSettlements(chain.pool, { settlements, mined: done, apart, spoilers })
  await recordMisses(chain.pool, { reverted, displaced: [] })
}

/**
 * Divides the payments of one transaction into two groups. The receipt contains the transfers of the first group, but
 * not the transfers of the second group.
 */
function matchTransfers(
  chain: KnownChain,
  payments: readonly Payment[],
  receipt: Receipt,
): { settled: Settlement[]; missed: Payment[] } {
  const settled: Settlement[] = []
  const missed: Payment[] = []
  const transfers = readTransfers(
    receipt.status === 1n ? receipt.logs : [],
    chain.network.usdcAddress,
  )
  for (const payment of payments) {
    const logIndex = transferIndex(transfers, payment)
    if (logIndex === null) missed.push(payment)
    else settled.push(settlementOf(payment, receipt, logIndex, chain.receiptKey))
  }
  return { settled, missed }
}

/** Describes the payments of a group that failed although the transaction of the group is in a block. */
type Suspects = { payments: readonly Payment[]; blockNumber: bigint; hasReverted: boolean }

/**
 * Returns the payers whose contract code made the transaction of a payment group revert. No payer of a group had code
 * when the transaction was signed. But a payer can add code later, which can use up the gas of the whole group. If no
 * payer of a reverted group has code, every payer of the group is under suspicion.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
async function findSpoilers(
  chain: KnownChain,
  groups: readonly Suspects[],
): Promise<{ chainId: number; payer: string }[]> {
  const spoilers: Payment[] = []
  for (const { payments, blockNumber, hasReverted } of groups) {
    const codes = await codesAt(chain, payments, blockNumber)
    const coded = payments.filter((_, n) => codes[n] !== '0x')
    if (hasReverted) {
      chain.log.warn({ payments: payments.length, coded: coded.length }, 'a group reverted')
    }
    spoilers.push(...(hasReverted && coded.length === 0 ? payments : coded))
  }
  return spoilers.map(({ chainId, payer }) => ({ chainId, payer }))
}

/**
 * Returns the contract code of each payer at the block of the group transaction. The head of this process may be older
 * than this block, or newer, and a payer may have removed the code since. If the node has deleted the state of this
 * block, the code at the head counts.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
async function codesAt(
  chain: KnownChain,
  payments: readonly Payment[],
  block: bigint,
): Promise<Hex[]> {
  const payers = payments.map(({ payer }) => payer)
  try {
    return await readCode(chain.rpc, payers, block)
  } catch (error) {
    if (!(error instanceof RpcTrouble) || block >= chain.head.number) throw error
    return readCode(chain.rpc, payers, chain.head.number)
  }
}

/**
 * Returns the transactions whose receipts have been missing for too long. A chain node can count a nonce as used before
 * the node has the receipt. If the receipt of a transaction does not appear, another transaction must have used the
 * nonce.
 */
function longMissing(chain: KnownChain, missing: readonly OpenTransaction[]): Hex[] {
  const nowMs = performance.now()
  const since = chain.missingSinceMs
  for (const { hash } of missing) if (!since.has(hash)) since.set(hash, nowMs)
  const lost = missing
    .map((one) => one.hash)
    .filter((hash) => nowMs - since.get(hash)! >= chain.timing.displacedMs)
  for (const hash of lost) since.delete(hash)
  return lost
}
