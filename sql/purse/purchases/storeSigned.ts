import type { Hex } from 'viem'
import { keptOffer } from '../../../shared/purse/offerReceipt.ts'
import { type Offer, WORDLESS } from '../../../shared/purse/offers.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { Queryable } from '../../db.ts'
import type { Base } from './paidBefore.ts'
import { CONTENT, type SignedRequest, sealContent } from './purchaseContent.ts'

/** Describes a signed payment. The service signs a payment only while the purse and the mandates are locked. */
export type SignedPayment = {
  id: string
  projectId: string
  /**
   * Tells whether the purchase uses a vault credential, so that the seller's response may contain secrets of the vault.
   */
  hasCredential: boolean
  offer: Offer
  payer: string
  nonce: Hex
  validBefore: bigint
  base: Base
  content: SignedRequest
  /** Lists the row numbers of the mandates that cover the payment. */
  mandateRows: readonly bigint[]
}

/**
 * Stores signed payments, and adds each payment to the sums of its mandates. The function already counts the first
 * sending of each payment, because the worker process sends it immediately afterwards.
 */
export async function storeSigned(
  db: Queryable,
  keyring: Keyring,
  { payments, now }: { payments: readonly SignedPayment[]; now: Date },
): Promise<void> {
  if (payments.length === 0) return
  await db.query({
    name: 'store-signed-purchases',
    text: `update purchases u set state = 'signed', money = 'open', content_version = ${CONTENT.signed},
             key_id = w.key_id, wrapped_key = w.wrapped_key, ciphertext = w.ciphertext, payer = w.payer, nonce = w.nonce,
             valid_before = w.valid_before, reserved_at = $1, x402_version = w.x402_version, network = w.network,
             asset = w.asset, pay_to = w.pay_to, amount_atomic = w.amount_atomic, resource = w.resource,
             description = w.description, base_atomic = w.base_atomic, base_at = w.base_at,
             seller_offer = w.seller_offer, sends = 1, signed_block = (select head_number from chain_status)
           from unnest($2::text[], $3::text[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::bigint[],
             $9::int[], $10::text[], $11::text[], $12::text[], $13::numeric[], $14::text[], $15::text[],
             $16::numeric[], $17::timestamptz[], $18::text[])
             w (id, key_id, wrapped_key, ciphertext, payer, nonce, valid_before, x402_version, network, asset, pay_to,
               amount_atomic, resource, description, base_atomic, base_at, seller_offer)
           where u.id = w.id`,
    values: [now, ...columnsOf(payments.map((payment) => valuesOf(payment, keyring)))],
  })
  await countIn(db, payments, now)
}

function valuesOf(payment: SignedPayment, keyring: Keyring): unknown[] {
  const { id, projectId, hasCredential, base } = payment
  const offer = hasCredential ? { ...payment.offer, ...WORDLESS } : payment.offer
  const kept = hasCredential ? null : keptOffer(payment.offer.challenge.extensions, payment.offer)
  const { keyId, wrappedKey, ciphertext } = sealContent(
    keyring,
    { projectId, id },
    CONTENT.signed,
    payment.content,
  )
  return [
    ...[id, keyId, wrappedKey, ciphertext, payment.payer, payment.nonce],
    ...[String(payment.validBefore), ...termsValues(offer)],
    ...[String(base.atomic), base.at, kept],
  ]
}

/** Turns an array of rows into an array of columns. */
const columnsOf = (rows: unknown[][]): unknown[][] =>
  rows[0]!.map((_value, column) => rows.map((row) => row[column]))

/**
 * Returns the payment terms of an offer as column values: x402_version, network, asset, pay_to, amount_atomic,
 * resource, description.
 */
export const termsValues = ({
  challenge,
  network,
  payTo,
  amountAtomic,
  resource,
  description,
}: Offer) => [
  challenge.x402Version,
  network.network,
  network.usdcAddress.toLowerCase(),
  payTo,
  String(amountAtomic),
  resource,
  description,
]

async function countIn(
  db: Queryable,
  payments: readonly SignedPayment[],
  now: Date,
): Promise<void> {
  const counted = payments.flatMap(({ id, mandateRows, offer }) =>
    mandateRows.map((row) => ({ id, row: String(row), atomic: String(offer.amountAtomic) })),
  )
  await db.query({
    name: 'count-in-mandates',
    text: `with given as (
             select * from unnest($2::text[], $3::bigint[], $4::numeric[]) g (purchase, mandate_row, atomic)
           ), sums as (
             select mandate_row, sum(atomic) as atomic from given group by mandate_row
           ), listed as (
             insert into purchase_mandates (purchase_row, mandate_row, reserved_at)
             select u.row, g.mandate_row, $1 from given g join purchases u on u.id = g.purchase
           ), hours as (
             insert into mandate_hours as h (mandate_row, hour, amount_atomic)
             select mandate_row, date_trunc('hour', $1::timestamptz, 'UTC'), atomic from sums
             on conflict (mandate_row, hour) do update set amount_atomic = h.amount_atomic + excluded.amount_atomic
           )
           update mandates m set reserved_atomic = m.reserved_atomic + s.atomic from sums s where m.row = s.mandate_row`,
    values: [
      now,
      counted.map(({ id }) => id),
      counted.map(({ row }) => row),
      counted.map(({ atomic }) => atomic),
    ],
  })
}
