import type { RefundEventData, RefundedPurchaseEventData } from '../../../shared/events/events.ts'
import type { UsdcNetwork } from '../../../shared/till/usdc.ts'
import type { Queryable } from '../../db.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'

/**
 * Describes a refund on the chain, with the data for the receipt of the refund. In a refund, `payer` is the seller, and
 * `payTo` is the buyer.
 */
export type RefundFacts = {
  id: string
  refundOf: string
  amountAtomic: bigint
  payer: string
  payTo: string
  projectId: string
  endpointId: string | null
  network: UsdcNetwork['network']
  resource: string
}

/** Signs the receipt of a refund, and returns the receipt. */
export type SignRefund = (refund: RefundFacts, txHash: string) => string

/** Returns a refund with the data of the refunded payment. */
export async function readRefundFacts(
  db: Queryable,
  refund: Pick<RefundFacts, 'id' | 'refundOf' | 'amountAtomic' | 'payer' | 'payTo'>,
): Promise<RefundFacts> {
  const { rows } = await db.query<{
    project_id: string
    endpoint_id: string | null
    network: UsdcNetwork['network']
    resource_url: string
  }>('select project_id, endpoint_id, network, resource_url from payments where id = $1', [
    refund.refundOf,
  ])
  const { project_id: projectId, endpoint_id: endpointId, network, resource_url } = rows[0]!
  return { ...refund, projectId, endpointId, network, resource: resource_url }
}

/**
 * Notifies the seller's project that a refund is on the chain. If a purse of this service made the refunded payment,
 * the buyer's project is notified too.
 */
export async function tellRefund(
  db: Queryable,
  { id, refundOf, amountAtomic, payTo, network, projectId }: RefundFacts,
  txHash: string,
): Promise<void> {
  const amountUsdcRaw = String(amountAtomic)
  const data: RefundEventData = { refundId: id, refundOf, amountUsdcRaw, payTo, network, txHash }
  const events: NewEvent[] = [{ projectId, type: 'payment.refunded', data }]
  const { rows } = await db.query<{ id: string; project_id: string }>(
    `select u.id, u.project_id from payments p
     join purchases u on u.payer = lower(p.payer) and u.nonce = lower(p.authorization_nonce)
     where p.id = $1`,
    [refundOf],
  )
  const purchase = rows[0]
  if (purchase !== undefined) {
    const told: RefundedPurchaseEventData = {
      ...{ purchaseId: purchase.id, refundId: id, amountUsdcRaw },
      ...{ network, txHash },
    }
    events.push({ projectId: purchase.project_id, type: 'purse.refunded', data: told })
  }
  await recordEvents(db, events)
}
