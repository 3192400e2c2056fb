/**
 * Proves the refunds that sellers paid by hand. The transaction that the seller names must contain the transfer of the
 * refund, with the exact amount in atomic units.
 */
import {
  type ClaimedRefund,
  findClaimed,
  recordHandRefund,
  refuseClaim,
  soldNonces,
  usedLogs,
} from '../../../sql/purse/refunds/handRefunds.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { refundReceipt } from '../chain/receipts.ts'
import { type Receipt, readStrangersReceipts } from '../chain/transactionReceipts.ts'
import { noncesByLog, plainTransfers } from '../chain/transfer.ts'

const BATCH_MAX = 50

/**
 * Holds the row number of the hand-made refund at which the last poll ended. The number 0 means that the next poll
 * begins with the first of these refunds.
 */
export type ClaimMemory = { lastClaimRow: bigint }

/**
 * Checks once all refunds that, according to the sellers, they have paid by hand.
 * @throws {RpcTrouble} if the chain node does not respond.
 */
export async function checkClaims(chain: KnownChain, memory: ClaimMemory): Promise<void> {
  const part = { after: memory.lastClaimRow, limit: BATCH_MAX }
  const claims = await findClaimed(chain.pool, chain.network.network, part)
  memory.lastClaimRow = claims.length < BATCH_MAX ? 0n : claims.at(-1)!.row
  if (claims.length === 0) return
  const receipts = await readStrangersReceipts(
    chain.rpc,
    claims.map(({ txHash }) => txHash),
  )
  for (const [n, claim] of claims.entries()) {
    const receipt = receipts[n]
    // If the chain node cannot send the receipt of the transaction that a seller named, this refund waits. The loop
    // goes on with the other refunds.
    if (receipt !== undefined) await judge(chain, claim, receipt)
  }
}

async function judge(
  chain: KnownChain,
  claim: ClaimedRefund,
  receipt: Receipt | null,
): Promise<void> {
  const refuse = (reason: string) => refuseClaim(chain.pool, claim, reason)
  if (receipt === null) {
    // A chain node may not have seen the transaction of the refund yet. Therefore a refund whose transaction is missing
    // is refused only after some time.
    if (claim.isOld) await refuse('no node knows the transaction')
    return
  }
  if (receipt.status !== 1n) return refuse('the transaction was reverted')
  if (receipt.blockNumber < claim.paidBlock)
    return refuse('the transaction is older than the payment')
  const nonces = noncesByLog(receipt.logs, claim.asset)
  const used = await usedLogs(chain.pool, claim)
  const sold = await soldNonces(chain.pool, claim, [...nonces.values()])
  const isUsed = (index: number) => used.includes(index) || sold.has(nonces.get(index) ?? '0x')
  const transfers = plainTransfers(receipt.logs, claim)
  const logIndex = transfers.find((index) => !isUsed(index))
  if (logIndex === undefined) {
    return refuse(
      !transfers.some(isUsed)
        ? 'the transaction has no transfer of this amount from the payee to the payer'
        : 'the transfers of the transaction count for other refunds, sales or purchases',
    )
  }
  const { blockNumber, blockHash } = receipt
  await recordHandRefund(chain.pool, claim, { logIndex, blockNumber, blockHash }, (facts, txHash) =>
    refundReceipt(facts, txHash, chain.receiptKey),
  )
}
