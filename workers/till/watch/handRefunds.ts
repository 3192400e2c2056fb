/** Proves refunds by hand: the transaction that a seller names must hold the transfer, to the atomic unit. */
import {
  type ClaimedRefund,
  findClaimed,
  findUnfinalRefunds,
  recordHandRefund,
  refuseClaim,
  settleRefunds,
  usedLogs,
} from '../../../sql/purse/refunds/handRefunds.ts'
import { type Block, type Receipt, readReceipts } from '../chain/chain.ts'
import type { KnownChain } from '../chain/chainView.ts'
import { refundReceipt } from '../chain/receipts.ts'
import { plainTransfers } from '../chain/transfer.ts'

const BATCH_MAX = 50

/** One look at claims and at refunds whose block may be final now. @throws {RpcTrouble} */
export async function tendHandRefunds(chain: KnownChain, final: Block | null): Promise<void> {
  const { network } = chain.network
  const claims = await findClaimed(chain.pool, network, BATCH_MAX)
  const receipts = await readReceipts(
    chain.rpc,
    claims.map(({ txHash }) => txHash),
  )
  for (const [n, claim] of claims.entries()) await judge(chain, claim, receipts[n] ?? null)
  if (final !== null) await tendProved(chain, final)
}

async function judge(
  chain: KnownChain,
  claim: ClaimedRefund,
  receipt: Receipt | null,
): Promise<void> {
  const refuse = (reason: string) => refuseClaim(chain.pool, claim, reason)
  if (receipt === null) {
    // A node may be behind: only time tells that there is no such transaction.
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

async function tendProved(chain: KnownChain, final: Block): Promise<void> {
  const proved = await findUnfinalRefunds(chain.pool, chain.network.network, {
    upTo: final.number,
    limit: BATCH_MAX,
  })
  if (proved.length === 0) return
  const receipts = await readReceipts(
    chain.rpc,
    proved.map(({ txHash }) => txHash),
  )
  const isInPlace = (n: number) =>
    receipts[n]?.status === 1n && receipts[n].blockHash === proved[n]!.blockHash
  const idsOf = (isWanted: boolean) =>
    proved.filter((_, n) => isInPlace(n) === isWanted).map(({ id }) => id)
  await settleRefunds(chain.pool, { final: idsOf(true), replaced: idsOf(false) })
}
