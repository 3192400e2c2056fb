/** Stores purchases. A purchase is an agent's HTTP request to a seller, for which the service pays at most once. */
import type { Cursor } from '../../../shared/cursor.ts'
import type { ProofVerdict } from '../../../shared/purse/offerReceipt.ts'
import type { PurchaseAnswer } from '../../../shared/purse/purchaseAnswer.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { UseRequest } from '../../../shared/vault/useRequest.ts'
import type { Queryable } from '../../db.ts'
import { pageStart } from '../../pageStart.ts'
import { type Refund, refundsOfPurchase } from '../refunds/refunds.ts'
import { CONTENT, type ContentRow, openContent } from './purchaseContent.ts'

export type PurchaseState =
  | 'queued'
  | 'asking'
  | 'waiting'
  | 'signed'
  | 'answered'
  | 'quoted'
  | 'refused'
  | 'failed'
  | 'unknown'

/**
 * Describes the state of the money that a purchase has reserved. The money is `open` after the signature, `spent` after
 * the settlement on the chain, and `released` when no block can settle the payment any more.
 */
type MoneyState = 'open' | 'spent' | 'released'

export type PurchaseRow = ContentRow & {
  row: string
  kind: 'payment' | 'quote' | 'sweep' | 'refund'
  request_hash: Buffer
  state: PurchaseState
  reason: string | null
  detail: string | null
  method: UseRequest['method']
  host: string
  path: string
  max_atomic: string
  why: string | null
  asked_by: string
  created_at: Date
  ended_at: Date | null
  status: number | null
  sends: number
  x402_version: number | null
  network: string | null
  pay_to: string | null
  amount_atomic: string | null
  resource: string | null
  description: string | null
  money: MoneyState | null
  payer: string | null
  nonce: string | null
  valid_before: string | null
  tx_hash: string | null
  block_number: string | null
  spent_at: Date | null
  final_at: Date | null
  claimed_tx: string | null
  seller_receipt: string | null
  receipt_verdict: ProofVerdict | null
  seller_offer: string | null
  offer_verdict: ProofVerdict | null
  credential_name: string | null
  tool: string | null
  signed_in_at: Date | null
  mandate_ids: string[]
}

export const PURCHASE_COLUMNS = `u.row, u.id, u.project_id, u.kind, u.request_hash, u.state, u.reason, u.detail, u.method, u.host, u.path,
  u.max_atomic, u.why, u.asked_by, u.created_at, u.ended_at, u.content_version, u.key_id, u.wrapped_key, u.ciphertext,
  u.status, u.sends, u.x402_version, u.network, u.pay_to, u.amount_atomic, u.resource, u.description, u.money, u.payer,
  u.nonce, u.valid_before, u.tx_hash, u.block_number, u.spent_at, u.final_at, u.claimed_tx, u.seller_receipt,
  u.receipt_verdict, u.seller_offer, u.offer_verdict, u.credential_name, u.tool, u.signed_in_at,
  array(select m.id from purchase_mandates pm join mandates m on m.row = pm.mandate_row
        where pm.purchase_row = u.row order by m.row) as mandate_ids`

/**
 * Describes a purchase in the form that the API's caller sees. The seller wrote the texts in `resource`, `description`
 * and `answer`.
 */
export type Purchase = {
  row: bigint
  id: string
  kind: 'payment' | 'quote'
  state: PurchaseState
  reason: string | null
  detail: string | null
  method: string
  host: string
  path: string
  tool: string | null
  credentialName: string | null
  signedInAt: Date | null
  maxAtomic: bigint
  why: string | null
  askedBy: string
  createdAt: Date
  endedAt: Date | null
  status: number | null
  /**
   * Holds the seller's response to the purchase request. Null means that the seller sent no response, or that the
   * stored response has expired.
   */
  answer: PurchaseAnswer | null
  terms: {
    x402Version: number
    network: string
    payTo: string
    amountAtomic: bigint
    resource: string | null
    description: string | null
  } | null
  money: {
    state: MoneyState
    payer: string
    nonce: string
    validBefore: bigint
    txHash: string | null
    blockNumber: bigint | null
    spentAt: Date | null
    isFinal: boolean
    claimedTx: string | null
    sellerReceipt: string | null
    receiptVerdict: ProofVerdict | null
    sellerOffer: string | null
    offerVerdict: ProofVerdict | null
    mandateIds: string[]
  } | null
  /**
   * Lists the refunds that sellers of this service made for the purchase. Lists of purchases leave out the field
   * `refunds`.
   */
  refunds?: Refund[]
}

const toPurchase = (row: PurchaseRow, keyring: Keyring | null): Purchase => ({
  row: BigInt(row.row),
  id: row.id,
  kind: row.kind as Purchase['kind'],
  state: row.state,
  reason: row.reason,
  detail: row.detail,
  method: row.method,
  host: row.host,
  path: row.path,
  tool: row.tool,
  credentialName: row.credential_name,
  signedInAt: row.signed_in_at,
  maxAtomic: BigInt(row.max_atomic),
  why: row.why,
  askedBy: row.asked_by,
  createdAt: row.created_at,
  endedAt: row.ended_at,
  status: row.status,
  answer: keyring === null ? null : openContent<PurchaseAnswer>(keyring, row, CONTENT.answer),
  terms:
    row.amount_atomic === null
      ? null
      : {
          x402Version: row.x402_version!,
          network: row.network!,
          payTo: row.pay_to!,
          amountAtomic: BigInt(row.amount_atomic),
          resource: row.resource,
          description: row.description,
        },
  money:
    row.money === null
      ? null
      : {
          state: row.money,
          payer: row.payer!,
          nonce: row.nonce!,
          validBefore: BigInt(row.valid_before!),
          txHash: row.tx_hash,
          blockNumber: row.block_number === null ? null : BigInt(row.block_number),
          spentAt: row.spent_at,
          isFinal: row.final_at !== null,
          claimedTx: row.claimed_tx,
          sellerReceipt: row.seller_receipt,
          receiptVerdict: row.receipt_verdict,
          sellerOffer: row.seller_offer,
          offerVerdict: row.offer_verdict,
          mandateIds: row.mandate_ids,
        },
})

/**
 * Finds a purchase of a project. @returns null if the project has no such purchase. @param keyring decrypts the
 * seller's response. If `keyring` is null, the function returns the purchase without the seller's response.
 */
export async function findPurchase(
  db: Queryable,
  { projectId, id, keyring }: { projectId: string; id: string; keyring: Keyring | null },
): Promise<Purchase | null> {
  const { rows } = await db.query<PurchaseRow>({
    name: 'find-purchase',
    text: `select ${PURCHASE_COLUMNS} from purchases u
           where u.id = $1 and u.project_id = $2 and u.kind in ('payment', 'quote')`,
    values: [id, projectId],
  })
  const row = rows[0]
  if (row === undefined) return null
  const { payer, nonce, network } = row
  const refunds =
    payer === null || nonce === null || network === null
      ? []
      : await refundsOfPurchase(db, { payer, nonce, network })
  return { ...toPurchase(row, keyring), refunds }
}

/**
 * Selects the purchases of a list. A null filter field does not restrict the list. The fields `from` and `until` limit
 * the time at which the API accepted the purchase.
 */
export type PurchaseFilter = {
  projectId: string
  cursor: Cursor | null
  limit: number
  money: MoneyState | null
  state: PurchaseState | null
  host: string | null
  mandateId: string | null
  from: Date | null
  until: Date | null
}

/** Lists the purchases of a project, newest first, without the sellers' responses. The list leaves out quotes. */
export async function listPurchases(db: Queryable, filter: PurchaseFilter): Promise<Purchase[]> {
  const { rows } = await db.query<PurchaseRow>({
    name: 'list-purchases',
    text: `select ${PURCHASE_COLUMNS} from purchases u
           where u.project_id = $1 and u.kind = 'payment' and (u.created_at, u.row) < ($2::timestamptz, $3::bigint)
             and ($5::text is null or u.money = $5) and ($6::text is null or u.host = $6)
             and ($7::timestamptz is null or u.created_at >= $7) and ($8::timestamptz is null or u.created_at < $8)
             and ($9::text is null or exists (
               select from purchase_mandates pm join mandates m on m.row = pm.mandate_row
               where pm.purchase_row = u.row and m.id = $9))
             and ($10::text is null or u.state = $10)
           order by u.created_at desc, u.row desc limit $4`,
    values: [
      ...[filter.projectId, ...pageStart(filter.cursor), filter.limit, filter.money, filter.host],
      ...[filter.from, filter.until, filter.mandateId, filter.state],
    ],
  })
  return rows.map((row) => toPurchase(row, null))
}
