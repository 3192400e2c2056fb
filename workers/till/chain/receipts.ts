import { receiptText, signReceipt } from '../../../shared/till/receipt.ts'
import type { ReceiptKey } from '../../../shared/till/receiptKey.ts'
import type { RefundFacts } from '../../../sql/purse/refunds/refundFacts.ts'
import type { Payment } from '../../../sql/till/payments/payments.ts'
import type { Settlement } from '../../../sql/till/settle/settlements.ts'
import type { TransferProof } from './transferProof.ts'

/**
 * Returns the settlement of a payment, with its signed receipt. Before this call, the caller must have found the
 * payment's Transfer event in the transaction.
 */
export function settlementOf(
  payment: Payment,
  receipt: TransferProof,
  logIndex: number,
  key: ReceiptKey,
): Settlement {
  const settledAt = new Date()
  const signed = signReceipt({
    key,
    body: {
      version: 1,
      paymentId: payment.id,
      paymentInId: payment.id,
      endpointId: payment.endpointId,
      projectId: payment.projectId,
      identityId: payment.projectId,
      payerAddress: payment.payer,
      recipientAddress: payment.recipient,
      amountUsdcRaw: payment.amountAtomic.toString(),
      network: payment.network,
      resource: payment.resourceUrl,
      txHash: receipt.transactionHash,
      ...(payment.resourceSource === 'payer' ? { resourceSource: 'payer' } : {}),
      ...(payment.paymentIdentifier === null
        ? {}
        : { paymentIdentifier: payment.paymentIdentifier }),
      timestamp: settledAt.toISOString(),
    },
  })
  return {
    paymentId: payment.id,
    txHash: receipt.transactionHash,
    logIndex,
    blockNumber: receipt.blockNumber,
    blockHash: receipt.blockHash,
    receiptText: receiptText(signed),
    settledAt,
  }
}

/** Returns the text of the signed receipt for a refund, in which the seller is the party that pays. */
export function refundReceipt(
  {
    id,
    refundOf,
    amountAtomic,
    endpointId,
    projectId,
    payer,
    payTo,
    network,
    resource,
  }: RefundFacts,
  txHash: string,
  key: ReceiptKey,
): string {
  const signed = signReceipt({
    key,
    body: {
      version: 1,
      paymentId: id,
      paymentInId: id,
      endpointId,
      projectId,
      identityId: projectId,
      payerAddress: payer,
      recipientAddress: payTo,
      amountUsdcRaw: String(amountAtomic),
      network,
      resource,
      txHash,
      refundOf,
      timestamp: new Date().toISOString(),
    },
  })
  return receiptText(signed)
}
