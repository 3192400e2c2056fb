/**
 * The reservation of a payment: the one place where a purse signs.
 *
 * Locks, in this order: the purchase, the purse, the mandates. Under them all sums are exact: two payments of one
 * project never see each other's gap. The signature is stored in the same transaction, so that none goes out that does
 * not count.
 */
import { randomBytes } from 'node:crypto'
import type { Hex } from 'viem'
import { brokenBound, covers } from '../../shared/purse/mandate.ts'
import { keptOffer } from '../../shared/purse/offerReceipt.ts'
import { type Offer, WORDLESS } from '../../shared/purse/offers.ts'
import { signPayment } from '../../shared/purse/paymentHeader.ts'
import type { RefusalReason } from '../../shared/purse/refusal.ts'
import type { Keyring } from '../../shared/vault/envelope.ts'
import type { UseRequest } from '../../shared/vault/useRequest.ts'
import { type Pool, type Queryable, transaction } from '../db.ts'
import { type NewEvent, recordEvents } from '../events/events.ts'
import { lockMandates, type Mandate, readUsed, SUM_BOUNDS, type Used } from './mandates.ts'
import {
  CONTENT,
  type ContentRow,
  openContent,
  type SignedRequest,
  sealContent,
} from './purchaseContent.ts'
import { openSum, purseSigner } from './purses.ts'

/** Why the owner is asked. */
export type AskReason = 'above_limit' | 'new_payee' | 'price_rose'

export type Reserved =
  | { kind: 'signed' }
  | { kind: 'refused'; reason: RefusalReason }
  | { kind: 'ask'; reason: AskReason }
  /** Another worker has it, or its project is gone. */
  | { kind: 'not_due' }

type PurchaseRow = ContentRow & {
  method: string
  host: string
  path: string
  max_atomic: string
  approved_hash: Buffer | null
  credential_name: string | null
  tool: string | null
}

/** What a payment is for. */
type Wanted = { id: string; url: string; offer: Offer; keyring: Keyring; termsHash: Buffer }

/** Reserves and signs a payment in every mandate that covers it; or says why not. It changes nothing then. */
export function reserve(pool: Pool, wanted: Wanted): Promise<Reserved> {
  return transaction(pool, async (db) => {
    const { id, url, offer, keyring } = wanted
    const purchase = await lockPurchase(db, id)
    if (purchase === null) return { kind: 'not_due' }
    const { project_id: projectId } = purchase
    const purse = await lockPurse(db, projectId)
    if (purse === null) return refused('no_purse')
    if (purse.isFrozen) return refused('frozen')
    const { amountAtomic, payTo, network } = offer
    if (amountAtomic > BigInt(purchase.max_atomic)) return refused('max_amount_exceeded')
    const place = { host: purchase.host, url, network: network.network }
    const mandates = (await lockMandates(db, projectId)).filter((one) => covers(one, place))
    if (mandates.length === 0) return refused('not_in_mandate')
    if (mandates.some(({ state }) => state === 'frozen')) return refused('frozen')
    const { now, used } = await readUsed(db, mandates)
    for (const [n, mandate] of mandates.entries()) {
      const reason =
        brokenBound(mandate, { payTo, amountAtomic }) ?? brokenSum(mandate, used[n]!, amountAtomic)
      if (reason !== null) return refused(reason)
    }
    if (purse.freeAtomic < amountAtomic) return refused('insufficient_funds')
    const isApproved = purchase.approved_hash?.equals(wanted.termsHash) === true
    const memory = await readMemory(db, purchase, payTo)
    const base = isApproved ? { atomic: amountAtomic, at: now } : baseOf(memory, amountAtomic, now)
    const ask = isApproved ? null : askReason(memory, base, offer, mandates)
    if (ask !== null) return { kind: 'ask', reason: ask }

    const request = openContent<UseRequest>(keyring, purchase, CONTENT.request)
    if (request === null) return { kind: 'not_due' }
    const signer = await purseSigner(db, keyring, { projectId, address: purse.address })
    const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + offer.windowS)
    const header = await signPayment(offer, signer, { nonce, validBefore })
    await storeSigned(
      db,
      { purchase, offer, keyring, now, nonce, validBefore, payer: purse.address, base },
      { request, header },
    )
    await countIn(db, { purchaseId: id, mandates, now, amountAtomic })
    await recordEvents(db, warnings(projectId, mandates, used, amountAtomic))
    return { kind: 'signed' }
  })
}

const refused = (reason: RefusalReason): Reserved => ({ kind: 'refused', reason })

async function lockPurchase(db: Queryable, id: string): Promise<PurchaseRow | null> {
  const { rows } = await db.query<PurchaseRow>({
    name: 'lock-asking-purchase',
    text: `select u.id, u.project_id, u.method, u.host, u.path, u.max_atomic, u.approved_hash, u.credential_name, u.tool, u.content_version,
             u.key_id, u.wrapped_key, u.ciphertext
           from purchases u join projects j on j.id = u.project_id
           where u.id = $1 and u.state = 'asking' and u.kind = 'payment' and j.deleted_at is null
           for update of u`,
    values: [id],
  })
  return rows[0] ?? null
}

/** Locks the purse of a project: its address, and what is free of its balance. */
export async function lockPurse(
  db: Queryable,
  projectId: string,
): Promise<{ address: string; isFrozen: boolean; freeAtomic: bigint } | null> {
  const locked = await db.query({
    name: 'lock-purse',
    text: 'select from purses where project_id = $1 for update',
    values: [projectId],
  })
  if (locked.rowCount === 0) return null
  // A statement of its own: its snapshot begins after the lock, so that it sees what the last holder reserved.
  const { rows } = await db.query<{ address: string; frozen: boolean; free: string }>({
    name: 'read-locked-purse',
    text: `select p.address, p.frozen_at is not null as frozen,
             coalesce(p.balance_atomic, 0) - ${openSum('p')} as free
           from purses p where p.project_id = $1`,
    values: [projectId],
  })
  const { address, frozen, free } = rows[0]!
  return { address, isFrozen: frozen, freeAtomic: BigInt(free) }
}

function brokenSum(
  { limits, paymentsPerMinute }: Mandate,
  used: Used,
  amountAtomic: bigint,
): RefusalReason | null {
  const isPassed = SUM_BOUNDS.some((bound) => {
    const limit = limits[bound]
    return limit !== null && used[bound] + amountAtomic > limit
  })
  if (isPassed) return 'mandate_exceeded'
  return used.lastMinute >= paymentsPerMinute ? 'too_many_payments' : null
}

/** What was paid before at a host and at one of its paths. */
type Memory = {
  hostIsKnown: boolean
  payeeIsKnown: boolean
  /** Of the last payment for the path; null: there is none. */
  last: { amountAtomic: bigint; base: Base } | null
}

/** The price that a rise is measured from. */
type Base = { atomic: bigint; at: Date }

async function readMemory(
  db: Queryable,
  { project_id: projectId, host, path, tool }: PurchaseRow,
  payTo: string,
): Promise<Memory> {
  const { rows } = await db.query<{
    any: boolean
    known: boolean
    amount: string | null
    base: string | null
    base_at: Date | null
  }>({
    name: 'remembered-payments',
    text: `select
             exists (select from purchases where project_id = $1 and host = $2 and money is not null) as any,
             exists (select from purchases where project_id = $1 and host = $2 and money is not null and pay_to = $4)
               as known,
             l.amount_atomic as amount, l.base_atomic as base, l.base_at
           from (select) one left join lateral (
             select amount_atomic, base_atomic, base_at from purchases
             where project_id = $1 and host = $2 and path = $3 and tool is not distinct from $5 and money is not null
             order by row desc limit 1) l on true`,
    values: [projectId, host, path, payTo, tool],
  })
  const { any, known, amount, base, base_at: at } = rows[0]!
  const isThere = amount !== null && base !== null && at !== null
  return {
    hostIsKnown: any,
    payeeIsKnown: known,
    last: isThere ? { amountAtomic: BigInt(amount), base: { atomic: BigInt(base), at } } : null,
  }
}

const BASE_AGE_MS = 30 * 24 * 3_600_000

/** The base of the next payment: the lowest price, until it is 30 days old. Then the last price takes its place. */
function baseOf({ last }: Memory, amountAtomic: bigint, now: Date): Base {
  if (last === null || amountAtomic <= last.base.atomic) return { atomic: amountAtomic, at: now }
  const isOld = now.getTime() - last.base.at.getTime() > BASE_AGE_MS
  return isOld ? { atomic: last.amountAtomic, at: now } : last.base
}

/** Whether the owner must see the payment: its price, a payee that the host never had, or a price that rose. */
function askReason(
  memory: Memory,
  base: Base,
  { payTo, amountAtomic }: Offer,
  mandates: readonly Mandate[],
): AskReason | null {
  const isAbove = mandates.some(
    ({ askAboveAtomic }) => askAboveAtomic !== null && amountAtomic > askAboveAtomic,
  )
  if (isAbove) return 'above_limit'
  const isPinned = mandates.some(({ payees }) => payees?.includes(payTo))
  if (memory.hostIsKnown && !memory.payeeIsKnown && !isPinned) return 'new_payee'
  const risePercent = Math.min(...mandates.map(({ risePercent: rise }) => rise))
  return amountAtomic * 100n > base.atomic * BigInt(100 + risePercent) ? 'price_rose' : null
}

async function storeSigned(
  db: Queryable,
  about: {
    purchase: PurchaseRow
    offer: Offer
    keyring: Keyring
    now: Date
    nonce: Hex
    validBefore: bigint
    payer: string
    base: Base
  },
  content: SignedRequest,
): Promise<void> {
  const { purchase, keyring } = about
  const isOpen = purchase.credential_name === null
  const offer = isOpen ? about.offer : { ...about.offer, ...WORDLESS }
  const place = { projectId: purchase.project_id, id: purchase.id }
  const sealed = sealContent(keyring, place, CONTENT.signed, content)
  await db.query({
    name: 'store-signed-purchase',
    text: `update purchases set state = 'signed', money = 'open', content_version = ${CONTENT.signed},
             key_id = $2, wrapped_key = $3, ciphertext = $4, payer = $5, nonce = $6, valid_before = $7,
             reserved_at = $8, x402_version = $9, network = $10, asset = $11, pay_to = $12, amount_atomic = $13,
             resource = $14, description = $15, base_atomic = $16, base_at = $17, seller_offer = $18, signed_block = (select head_number from chain_status)
           where id = $1`,
    values: [
      ...[
        purchase.id,
        sealed.keyId,
        sealed.wrappedKey,
        sealed.ciphertext,
        about.payer,
        about.nonce,
      ],
      ...[String(about.validBefore), about.now, ...termsValues(offer)],
      ...[
        String(about.base.atomic),
        about.base.at,
        isOpen ? keptOffer(offer.challenge.extensions, offer) : null,
      ],
    ],
  })
}

/** The columns of an offer: x402_version, network, asset, pay_to, amount_atomic, resource, description. */
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
  {
    purchaseId,
    mandates,
    now,
    amountAtomic,
  }: { purchaseId: string; mandates: readonly Mandate[]; now: Date; amountAtomic: bigint },
): Promise<void> {
  await db.query({
    name: 'count-in-mandates',
    text: `with listed as (
             insert into purchase_mandates (purchase_row, mandate_row, reserved_at)
             select u.row, m.row, $3 from purchases u, unnest($2::bigint[]) m (row) where u.id = $1
           ), hours as (
             insert into mandate_hours as h (mandate_row, hour, amount_atomic)
             select m.row, date_trunc('hour', $3::timestamptz, 'UTC'), $4::numeric from unnest($2::bigint[]) m (row)
             on conflict (mandate_row, hour) do update set amount_atomic = h.amount_atomic + $4::numeric
           )
           update mandates set reserved_atomic = reserved_atomic + $4::numeric where row = any ($2)`,
    values: [purchaseId, mandates.map(({ row }) => String(row)), now, String(amountAtomic)],
  })
}

const WARNINGS = [95, 80] as const

/** An event for each bound that this payment takes over 80 or 95 %. */
function warnings(
  projectId: string,
  mandates: readonly Mandate[],
  used: readonly Used[],
  amountAtomic: bigint,
): NewEvent[] {
  return mandates.flatMap((mandate, n) =>
    SUM_BOUNDS.flatMap((bound): NewEvent[] => {
      const limit = mandate.limits[bound]
      const before = used[n]![bound]
      const after = before + amountAtomic
      const percent = WARNINGS.find(
        (share) =>
          limit !== null &&
          after * 100n >= limit * BigInt(share) &&
          before * 100n < limit * BigInt(share),
      )
      if (limit === null || percent === undefined) return []
      const data = {
        mandateId: mandate.id,
        bound,
        percent,
        usedUsdcRaw: String(after),
        limitUsdcRaw: String(limit),
      }
      return [{ projectId, type: 'purse.warned', data }]
    }),
  )
}
