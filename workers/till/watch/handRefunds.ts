/**
 * Proves the refunds that sellers paid by hand. The transaction that the seller names must contain the transfer of the
 * refund, with the exact amount in atomic units.
 */
import {
  type ClaimedRefund,
  findClaimed,
  recordHandRefund,
  refuseClaim,
  usedLogs,
} from '../../../sql/purse/refunds/handRefunds.ts'
import { type Receipt, readReceipts } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { refundReceipt } from '../chain/receipts.ts'
import { plainTransfers } from '../chain/transfer.ts'

const BATCH_MAX = 50

/**
 * Checks once the refunds that sellers claim to have paid by hand. @throws {RpcTrouble} if the chain node does not
 * respond.
 */
export async function checkClaims(chain: KnownChain): Promise<void> {
  const claims = await findClaimed(chain.pool, chain.network.network, BATCH_MAX)
  if (claims.length === 0) return
  const receipts = await readReceipts(
    chain.rpc,
    claims.map(({ txHash }) => txHash),
  )
  for (const [n, claim] of claims.entries()) await judge(chain, claim, receipts[n] ?? null)
}

async function judge(
  chain: KnownChain,
  claim: ClaimedRefund,
  receipt: Receipt | null,
): Promise<void> {
  const refuse = (reason: string) => refuseClaim(chain.pool, claim, reason)
  if (receipt === null) {
    // A chain node may not have seen the transaction of the refund yet. Therefore a refund with a missing transaction
    // is refused only after some time.
    if (claim.isOld) await refuse('no node knows the transaction')
    return
  }
  if (receipt.status !== 1n) return refuse('the transaction was reverted')
  if (receipt.blockNumber < claim.paidBlock)
    return refuse('the transaction is older than the payment')
  const used = await usedLogs(chain.pool, claim.txHash)
  const logIndex = plainTransfers(receipt.logs, claim).find((index) => !used.includes(index))
  if (logIndex === undefined) {
    return refuse(
      used.length === 0
        ? 'the transaction has no transfer of this amount from the payee to the payer'
        : 'the transfers of the transaction count for other refunds',
    )
  }
  const { blockNumber, blockHash } = receipt
  await recordHandRefund(chain.pool, claim, { logIndex, blockNumber, blockHash }, (facts, txHash) =>
    refundReceipt(facts, txHash, chain.receiptKey),
  )
}
