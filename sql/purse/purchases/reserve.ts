/**
 * Reserves the amounts of purchases in mandates, and signs the payments with the private key of a purse. No other file
 * signs payments of purchases.
 *
 * The function `reserve` locks first the purchases, then the purse, then the mandates. Under these locks all sums are
 * exact, so two payments of one project never spend the same money. The same transaction stores the signatures.
 * Therefore the sums include every signature that leaves the service.
 */
import { brokenBound, covers } from '../../../shared/purse/mandate.ts'
import type { Offer } from '../../../shared/purse/offers.ts'
import { signPayment } from '../../../shared/purse/paymentHeader.ts'
import type { RefusalReason } from '../../../shared/purse/refusal.ts'
import type { Keyring } from '../../../shared/vault/envelope.ts'
import type { UseRequest } from '../../../shared/vault/useRequest.ts'
import { type Client, type Pool, type Queryable, transaction } from '../../db.ts'
import { type NewEvent, recordEvents } from '../../events/events.ts'
import { isHere } from '../../till/watch/chainStatus.ts'
import { lockMandates, type Mandate, readUsed, SUM_BOUNDS, type Used } from '../mandates.ts'
import { isPurseGasUsedUp } from '../purseGas.ts'
import { openSum, type PurseSigner, purseSigner } from '../purses.ts'
import { type Base, type PaidBefore, type PaidPlace, readPaidBefore } from './paidBefore.ts'
import { CONTENT, type ContentRow, openContent, type SignedRequest } from './purchaseContent.ts'
import { type SignedPayment, storeSigned } from './storeSigned.ts'

/**
 * Limits the signed payments of a purse that sellers may still collect. Each new payment adds up the open payments, and
 * stopping the purse signs and sends a cancellation of each. Expired payments do not count. They stay open until the
 * final block that proves their end, which may come a quarter of an hour later.
 */
export const COLLECTABLE_MAX = 2_000
/** Limits the open payments of a purse, including expired ones, because each new payment adds up all of them. */
export const OPEN_MAX = 20_000

/** Gives the reason why the owner must approve a payment. */
export type AskReason = 'above_limit' | 'new_payee' | 'price_rose'

export type Reserved =
  | { kind: 'signed'; content: SignedRequest; payer: string; validBefore: bigint }
  | { kind: 'refused'; reason: RefusalReason }
  | { kind: 'ask'; reason: AskReason }
  /**
   * Means that the payment is no longer due, because another worker process has taken the purchase, or because the
   * project is deleted.
   */
  | { kind: 'not_due' }

type PurchaseRow = ContentRow & {
  row: string
  host: string
  path: string
  /** Holds the idempotency key of the purchase. Null means that an earlier version stored the purchase without a key. */
  idempotency_key: string | null
  max_atomic: string
  approved_hash: Buffer | null
  credential_name: string | null
  tool: string | null
}

/** Describes a wanted payment for a purchase: the id of the purchase, the URL, and the payment terms. */
export type Wanted = { id: string; url: string; offer: Offer; termsHash: Buffer }

/**
 * Reserves and signs payments of one project. The function reserves the amount of each payment in every mandate
 * (spending limit) that covers it, so that less remains for the next payment. For an unsigned payment, the result tells
 * the reason. The function takes the locks only once for a whole list of payments. With separate locks, 50 purchases of
 * one purse would wait 220 ms each.
 * @returns one result for each payment, in the order of the payments.
 */
export function reserve(
  pool: Pool,
  keyring: Keyring,
  {
    projectId,
    wanted,
    dailyGas,
  }: { projectId: string; wanted: readonly Wanted[]; dailyGas: number | null },
): Promise<Reserved[]> {
  return transaction(pool, async (db) => {
    const purchases = await lockPurchases(db, projectId, wanted)
    if (purchases.size === 0) return wanted.map(() => NOT_DUE)
    const purse = await lockPurse(db, projectId)
    if (purse === null) return wanted.map(({ id }) => (purchases.has(id) ? NO_PURSE : NOT_DUE))
    const isGasUsedUp = await isPurseGasUsedUp(db, projectId, dailyGas)
    const mandates = await lockMandates(db, projectId)
    const { now, used } = await readUsed(db, mandates)
    const due = wanted.filter(({ id }) => purchases.has(id))
    const places = due.map(({ id, offer }) => placeOf(purchases.get(id)!, offer))
    const state: State = {
      now,
      purse,
      isGasUsedUp,
      mandates: mandates.map((mandate, n) => ({ mandate, used: used[n]! })),
      paidBefore: await readPaidBefore(db, projectId, places),
    }
    const signer = await purseSigner(db, keyring, { projectId, address: purse.address })
    const payments: SignedPayment[] = []
    const events: NewEvent[] = []
    const answer = async (one: Wanted): Promise<Reserved> => {
      const purchase = purchases.get(one.id)
      if (purchase === undefined) return NOT_DUE
      const decided = decide(state, purchase, one)
      if (decided.kind !== 'fits') return decided
      const request = openContent<UseRequest>(keyring, purchase, CONTENT.request)
      if (request === null) return NOT_DUE
      const payment = await sign({ purchase, request, offer: one.offer, signer, decided })
      // The list of payments may contain the same purchase twice, because two runs of its job may overlap. The code
      // removes a signed purchase from the map, so that no second signature can spend the money again.
      purchases.delete(one.id)
      payments.push(payment)
      events.push(...count(state, payment, decided))
      const { content, payer, validBefore } = payment
      return { kind: 'signed', content, payer, validBefore }
    }
    const answers: Reserved[] = []
    for (const one of wanted) answers.push(await answer(one))
    await storeSigned(db, keyring, { payments, now })
    await recordEvents(db, events)
    return answers
  })
}

const NOT_DUE: Reserved = { kind: 'not_due' }
const refused = (reason: RefusalReason): Reserved => ({ kind: 'refused', reason })
const NO_PURSE = refused('no_purse')

/**
 * Holds the sums and facts that decide whether the service may sign a payment. Each signed payment of a group changes
 * them for the next payment.
 */
type State = {
  now: Date
  purse: LockedPurse
  isGasUsedUp: boolean
  mandates: Judge[]
  paidBefore: PaidBefore
}
/**
 * Describes a locked purse, with the part of its balance that is not reserved. The field `open` counts its signed
 * payments that are neither settled nor released. The field `collectable` counts those of them that have not expired.
 */
type LockedPurse = {
  address: string
  isFrozen: boolean
  freeAtomic: bigint
  open: number
  collectable: number
}
/** Describes a currently valid mandate, with the sums that payments have reserved in the mandate. */
type Judge = { mandate: Mandate; used: Used }
type Fits = { kind: 'fits'; place: PaidPlace; covering: Judge[]; base: Base }

const placeOf = ({ row, host, path, tool }: PurchaseRow, { payTo }: Offer): PaidPlace => ({
  row: BigInt(row),
  ...{ host, path, tool, payTo },
})

function decide(
  { now, purse, isGasUsedUp, mandates, paidBefore }: State,
  purchase: PurchaseRow,
  { url, offer, termsHash }: Wanted,
): Reserved | Fits {
  if (purse.isFrozen) return refused('frozen')
  const { amountAtomic, network } = offer
  if (amountAtomic > BigInt(purchase.max_atomic)) return refused('max_amount_exceeded')
  const covered = { host: purchase.host, url, network: network.network }
  const covering = mandates.filter(({ mandate }) => covers(mandate, covered))
  if (covering.length === 0) return refused('not_in_mandate')
  if (covering.some(({ mandate }) => mandate.state === 'frozen')) return refused('frozen')
  for (const { mandate, used } of covering) {
    const reason = brokenBound(mandate, offer) ?? brokenSum(mandate, used, amountAtomic)
    if (reason !== null) return refused(reason)
  }
  if (purse.freeAtomic < amountAtomic) return refused('insufficient_funds')
  if (purse.collectable >= COLLECTABLE_MAX || purse.open >= OPEN_MAX)
    return refused('too_many_open')
  if (isGasUsedUp) return refused('too_much_gas')
  const place = placeOf(purchase, offer)
  const isApproved = purchase.approved_hash?.equals(termsHash) === true
  const base = isApproved
    ? { atomic: amountAtomic, at: now }
    : paidBefore.baseOf(place, amountAtomic, now)
  const ask = isApproved ? null : askReason({ paidBefore, place, base }, offer, covering)
  return ask === null ? { kind: 'fits', place, covering, base } : { kind: 'ask', reason: ask }
}

async function sign({
  purchase,
  request,
  offer,
  signer,
  decided: { base, covering },
}: {
  purchase: PurchaseRow
  request: UseRequest
  offer: Offer
  signer: PurseSigner
  decided: Fits
}): Promise<SignedPayment> {
  const wanted = signer.nonceOf(purchase.idempotency_key ?? purchase.id)
  const { header, nonce, validBefore } = await signPayment(offer, signer, wanted)
  return {
    id: purchase.id,
    projectId: purchase.project_id,
    hasCredential: purchase.credential_name !== null,
    ...{ offer, nonce, validBefore, base },
    payer: signer.address,
    content: { request, header },
    mandateRows: covering.map(({ mandate }) => mandate.row),
  }
}

/**
 * Adds a signed payment to the sums that decide about the next payment of the same group. @returns a warning event for
 * each mandate limit that the signed payment nearly reaches.
 */
function count(
  { purse, paidBefore }: State,
  { projectId, offer: { amountAtomic }, base }: SignedPayment,
  { place, covering }: Fits,
): NewEvent[] {
  const events = warnings(projectId, covering, amountAtomic)
  purse.freeAtomic -= amountAtomic
  purse.open++
  purse.collectable++
  for (const { used } of covering) {
    for (const bound of SUM_BOUNDS) used[bound] += amountAtomic
    used.lastMinute++
  }
  paidBefore.note(place, amountAtomic, base)
  return events
}

/** Locks the purchases of a group of wanted payments in the order of their rows, so that two groups cannot deadlock. */
async function lockPurchases(
  db: Queryable,
  projectId: string,
  wanted: readonly Wanted[],
): Promise<Map<string, PurchaseRow>> {
  const { rows } = await db.query<PurchaseRow>({
    name: 'lock-asking-purchases',
    text: `select u.row, u.id, u.project_id, u.host, u.path, u.max_atomic, u.approved_hash, u.credential_name, u.tool,
             u.idempotency_key, u.content_version, u.key_id, u.wrapped_key, u.ciphertext
           from purchases u join projects j on j.id = u.project_id
           where u.id = any ($2) and u.project_id = $1 and u.state = 'asking' and u.kind = 'payment' and j.deleted_at is null
           order by u.row for update of u`,
    values: [projectId, wanted.map(({ id }) => id)],
  })
  return new Map(rows.map((row) => [row.id, row]))
}

/** Locks the purse of a project. @returns null if the project has no purse. */
export async function lockPurse(db: Client, projectId: string): Promise<LockedPurse | null> {
  const locked = await db.query({
    name: 'lock-purse',
    text: 'select from purses where project_id = $1 for update',
    values: [projectId],
  })
  if (locked.rowCount === 0) return null
  // Another transaction may have held the lock of the purse before, and may have stored payments. A separate SQL
  // statement reads the sums of the purse after the lock, so that it sees these payments.
  const { rows } = await db.query<{
    address: string
    frozen: boolean
    free: string
    open: number
    collectable: number
  }>({
    name: 'read-locked-purse',
    text: `select p.address, p.frozen_at is not null as frozen,
             coalesce(p.balance_atomic, 0) - ${openSum('p')} as free,
             o.open, o.collectable
           from purses p cross join lateral (
             select count(*)::int as open,
               (count(*) filter (where valid_before > extract(epoch from clock_timestamp())))::int as collectable
             from purchases u where project_id = p.project_id and money = 'open' and ${isHere('u')}) o
           where p.project_id = $1`,
    values: [projectId],
  })
  const { address, frozen, free, open, collectable } = rows[0]!
  return { address, isFrozen: frozen, freeAtomic: BigInt(free), open, collectable }
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

/**
 * Returns the reason why the owner must approve a payment: the payment is expensive, a known host names a new payee, or
 * the price has risen.
 * @returns null if the payment needs no approval.
 */
function askReason(
  { paidBefore, place, base }: { paidBefore: PaidBefore; place: PaidPlace; base: Base },
  { payTo, amountAtomic }: Offer,
  covering: readonly Judge[],
): AskReason | null {
  const mandates = covering.map(({ mandate }) => mandate)
  const isAbove = mandates.some(
    ({ askAboveAtomic }) => askAboveAtomic !== null && amountAtomic > askAboveAtomic,
  )
  if (isAbove) return 'above_limit'
  const isPinned = mandates.some(({ payees }) => payees?.includes(payTo))
  const isNew = paidBefore.hostIsKnown(place) && !paidBefore.payeeIsKnown(place)
  if (isNew && !isPinned) return 'new_payee'
  const risePercent = Math.min(...mandates.map(({ risePercent: rise }) => rise))
  return amountAtomic * 100n > base.atomic * BigInt(100 + risePercent) ? 'price_rose' : null
}

const WARNINGS = [95, 80] as const

/**
 * Returns a webhook event for each limit of a mandate of which a given payment uses up 80 % or 95 %. The sums of the
 * mandate must not include this payment yet.
 */
const warnings = (
  projectId: string,
  covering: readonly Judge[],
  amountAtomic: bigint,
): NewEvent[] =>
  covering.flatMap(({ mandate, used }) =>
    SUM_BOUNDS.flatMap((bound): NewEvent[] => {
      const limit = mandate.limits[bound]
      const before = used[bound]
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
