/**
 * Records each step of a worker process for a purchase: asked, signed (sql/purse/purchases/reserve.ts), sent, ended.
 */
import type { PurchaseEventData } from '../../../shared/events/events.ts'
import { keptOffer, type ProofVerdict } from '../../../shared/purse/offerReceipt.ts'
import type { Offer } from '../../../shared/purse/offers.ts'
import type { PurchaseAnswer } from '../../../shared/purse/purchaseAnswer.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { UseRequest } from '../../../shared/vault/useRequest.ts'
import { CHANGES_CHANNEL } from '../../changes.ts'
import { type Pool, type Queryable, transaction } from '../../db.ts'
import { recordEvents } from '../../events/events.ts'
import {
  ANSWER_KEPT,
  CONTENT,
  openContent,
  type SignedRequest,
  sealContent,
} from './purchaseContent.ts'
import { PURCHASE_COLUMNS, type PurchaseRow, type PurchaseState } from './purchases.ts'
import { termsValues } from './storeSigned.ts'

/** Describes a purchase with the data that the worker process needs. */
export type DuePurchase = {
  id: string
  projectId: string
  kind: 'payment' | 'quote'
  state: PurchaseState
  /** Tells whether the purchase has waited so long that its agent no longer expects a payment. */
  isLate: boolean
  method: UseRequest['method']
  host: string
  /** Holds the name of the vault credential that the purchase request uses. */
  credentialName: string | null
  /**
   * Holds the MCP tool that the purchase request calls. Null means that the purchase request is a plain HTTP request.
   */
  tool: string | null
  maxAtomic: bigint
  /** Holds the address of the purse that would pay. Null means that the project has no purse. */
  payer: string | null
  /**
   * Holds the SHA-256 of the payment terms that the owner approved. Null means that the owner has approved no payment
   * terms for the purchase.
   */
  approvedHash: Buffer | null
  /** Holds the signed payment terms. Null means that the service has signed no payment yet. */
  terms: SignedTerms | null
}

export type SignedTerms = {
  network: string
  asset: string
  payer: string
  payTo: string
  amountAtomic: bigint
  resource: string | null
  signedOffer: string | null
  signedAt: Date
}

/** Returns the payment terms of a seller's offer that the purse has signed. */
export const termsOf = (offer: Offer, payer: string, validBefore: bigint): SignedTerms => ({
  network: offer.network.network,
  asset: offer.network.usdcAddress.toLowerCase(),
  payer,
  payTo: offer.payTo,
  amountAtomic: offer.amountAtomic,
  resource: offer.resource,
  signedOffer: keptOffer(offer.challenge.extensions, offer),
  signedAt: new Date((Number(validBefore) - offer.windowS) * 1000),
})

/**
 * Limits how long a purchase waits for its signature, after the API accepted it or its owner approved it. Without this
 * limit, a pool of workers that was off for days would then pay for all orders of these days.
 */
const WAIT_MAX = '1 hour'

/** Finds a purchase in any state. @returns null if the purchase does not exist, or if its project is deleted. */
export async function findDuePurchase(db: Queryable, id: string): Promise<DuePurchase | null> {
  const { rows } = await db.query<
    PurchaseRow & {
      purse: string | null
      is_late: boolean
      approved_hash: Buffer | null
      asset: string | null
      reserved_at: Date | null
    }
  >({
    name: 'find-due-purchase',
    text: `select ${PURCHASE_COLUMNS}, p.address as purse, u.approved_hash, u.asset, u.reserved_at,
             greatest(u.created_at, (
               select decided_at from approvals where project_id = u.project_id and kind = 'payment' and subject = u.id))
               < clock_timestamp() - interval '${WAIT_MAX}' as is_late
           from purchases u join projects j on j.id = u.project_id
           left join purses p on p.project_id = u.project_id
           where u.id = $1 and j.deleted_at is null`,
    values: [id],
  })
  const row = rows[0]
  if (row === undefined) return null
  return {
    id,
    projectId: row.project_id,
    kind: row.kind as DuePurchase['kind'],
    state: row.state,
    isLate: row.is_late,
    method: row.method,
    host: row.host,
    credentialName: row.credential_name,
    tool: row.tool,
    maxAtomic: BigInt(row.max_atomic),
    payer: row.purse,
    approvedHash: row.approved_hash,
    terms:
      row.payer === null
        ? null
        : {
            network: row.network!,
            asset: row.asset!,
            payer: row.payer,
            payTo: row.pay_to!,
            amountAtomic: BigInt(row.amount_atomic!),
            resource: row.resource,
            signedOffer: row.seller_offer,
            signedAt: row.reserved_at!,
          },
  }
}

/**
 * Marks a queued purchase as `asking`, before the worker process asks the seller. The function also takes over a
 * purchase in this state if its worker process was interrupted.
 * @returns the HTTP request of the purchase. Null means that the purchase is already in a later step.
 */
export async function startAsking(
  db: Queryable,
  id: string,
  keyring: Keyring,
): Promise<UseRequest | null> {
  const { rows } = await db.query<PurchaseRow>({
    name: 'start-asking',
    text: `update purchases u set state = 'asking' where u.id = $1 and u.state in ('queued', 'asking')
           returning ${PURCHASE_COLUMNS}`,
    values: [id],
  })
  return rows[0] === undefined ? null : openContent<UseRequest>(keyring, rows[0], CONTENT.request)
}

/**
 * Describes a signed purchase request that the worker process is about to send. The field `sends` counts how often a
 * worker process has sent it, including this time.
 */
export type StartedSend = { content: SignedRequest; sends: number; validBefore: bigint }

/**
 * Counts a sending of a signed purchase request, before the worker process sends it. If the owner has stopped the
 * payment, the service sends the request again only to a seller that has already taken the money.
 * @returns null if the purchase has ended, or if the payment can no longer be settled. Returns 'stopped' if the owner
 * has stopped the payment.
 */
export function startSend(
  pool: Pool,
  id: string,
  keyring: Keyring,
): Promise<StartedSend | null | 'stopped'> {
  return transaction(pool, async (db) => {
    // The transaction locks the purchase's row first. Otherwise the watcher (the worker that polls the chain) could
    // change `money` while this transaction reads the row.
    const { rows: locked } = await db.query<{ money: string; stopped: boolean }>({
      name: 'lock-purchase-send',
      text: `select money, cancel_signature is not null as stopped from purchases
             where id = $1 and state = 'signed' for update`,
      values: [id],
    })
    const [purchase] = locked
    if (purchase === undefined) return null
    if (purchase.money === 'open' && purchase.stopped) return 'stopped'
    if (purchase.money !== 'open' && purchase.money !== 'spent') return null
    const { rows } = await db.query<PurchaseRow>({
      name: 'start-purchase-send',
      text: `update purchases u set sends = u.sends + 1 where u.id = $1 returning ${PURCHASE_COLUMNS}`,
      values: [id],
    })
    const row = rows[0]!
    const content = openContent<SignedRequest>(keyring, row, CONTENT.signed)
    if (content === null) return null
    return { content, sends: row.sends, validBefore: BigInt(row.valid_before!) }
  })
}

/**
 * Lists the states from which a purchase may end: the states before the signature of its payment, and the state after
 * it. Two runs of the job of one purchase may overlap. Therefore a run that has decided to end an unsigned purchase
 * must not end it after the other run has signed it.
 */
const ENDED_FROM = { unsigned: ['queued', 'asking'], signed: ['signed'] } as const

/** Describes the end of a purchase. */
export type PurchaseEnd = {
  state: 'answered' | 'quoted' | 'refused' | 'failed' | 'unknown'
  reason?: string
  detail?: string
  answer?: PurchaseAnswer
  /** Holds the seller's offer if the purchase ends without a signed payment. */
  offer?: Offer | null
  /** Holds the hash of the transaction that settled the payment, as the seller states it. */
  claimedTx?: string | null
  sellerReceipt?: string | null
  receiptVerdict?: ProofVerdict | null
  offerVerdict?: ProofVerdict | null
}

/**
 * Ends a purchase, and deletes the stored purchase request. If the seller has responded, this response replaces the
 * request. If the purchase has already ended, the function changes nothing.
 * @param from tells whether the caller decided the end before or after the signature of the payment. If another run of
 * the purchase job has signed the payment since then, the function changes nothing.
 */
export function endPurchase(pool: Pool, given: EndedPurchase): Promise<void> {
  const { end } = given
  const hasFurtherStatements = end.state === 'refused' || (end.offer ?? null) !== null
  return hasFurtherStatements ? transaction(pool, (db) => endIn(db, given)) : endIn(pool, given)
}

type EndedPurchase = {
  id: string
  projectId: string
  keyring: Keyring
  from: keyof typeof ENDED_FROM
  end: PurchaseEnd
}

async function endIn(
  db: Queryable,
  { id, projectId, keyring, from, end }: EndedPurchase,
): Promise<void> {
  const sealed =
    end.answer === undefined
      ? null
      : sealContent(keyring, { projectId, id }, CONTENT.answer, end.answer)
  const { rows } = await db.query<PurchaseRow>({
    name: 'end-purchase',
    text: `
      with ended as (
        update purchases u set state = $2, reason = $3, detail = $4, status = $5, claimed_tx = $6,
          seller_receipt = $7, content_version = ${CONTENT.answer}, key_id = $8, wrapped_key = $9, ciphertext = $10,
          content_until = clock_timestamp() + interval '${ANSWER_KEPT}', ended_at = clock_timestamp(),
          receipt_verdict = $11, offer_verdict = $12
        where u.id = $1 and u.ended_at is null and u.state = any ($13::text[]) returning ${PURCHASE_COLUMNS}
      )
      select ended.*, pg_notify('${CHANGES_CHANNEL}', id) from ended`,
    values: [
      ...[id, end.state, end.reason ?? null, end.detail?.slice(0, 500) ?? null],
      ...[end.answer?.status ?? null, end.claimedTx ?? null, end.sellerReceipt ?? null],
      ...[sealed?.keyId ?? null, sealed?.wrappedKey ?? null, sealed?.ciphertext ?? null],
      ...[end.receiptVerdict ?? null, end.offerVerdict ?? null, ENDED_FROM[from]],
    ],
  })
  const [ended] = rows
  if (ended === undefined) return
  const final = end.offer ? await storeTerms(db, id, end.offer) : ended
  if (end.state !== 'refused') return
  await recordEvents(db, [{ projectId, type: 'purse.refused', data: purchaseEvent(final) }])
}

/** Stores the payment terms of the seller's offer that the worker process chose. */
export async function storeTerms(db: Queryable, id: string, offer: Offer): Promise<PurchaseRow> {
  const { rows } = await db.query<PurchaseRow>(
    `update purchases u set x402_version = $2, network = $3, asset = $4, pay_to = $5, amount_atomic = $6, resource = $7,
       description = $8
     where u.id = $1 returning ${PURCHASE_COLUMNS}`,
    [id, ...termsValues(offer)],
  )
  return rows[0]!
}

/** Returns the data of a purchase event. */
export const purchaseEvent = (
  row: Pick<
    PurchaseRow,
    'id' | 'host' | 'path' | 'amount_atomic' | 'pay_to' | 'network' | 'tx_hash' | 'reason'
  >,
): PurchaseEventData => ({
  purchaseId: row.id,
  host: row.host,
  path: row.path,
  amountUsdcRaw: row.amount_atomic,
  payTo: row.pay_to,
  network: row.network,
  txHash: row.tx_hash,
  reason: row.reason,
})
