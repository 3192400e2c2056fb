import { normalUrl } from '../../shared/http/normalUrl.ts'
import {
  judgeProof,
  type ProofSubject,
  type ProofVerdict,
} from '../../shared/purse/offerReceipt.ts'
import type { Offer } from '../../shared/purse/offers.ts'
import { chooseOffer, readChallenge, WORDLESS } from '../../shared/purse/offers.ts'
import type { PaymentHeader } from '../../shared/purse/paymentHeader.ts'
import { type RefusalReason, refusalText } from '../../shared/purse/refusal.ts'
import {
  isUndecided,
  readSellerSettlement,
  type SellerSettlement,
} from '../../shared/purse/sellerSettlement.ts'
import { readSignIn } from '../../shared/purse/signIn.ts'
import { termsHash } from '../../shared/purse/termsHash.ts'
import { type UsdcNetwork, usdcNetwork } from '../../shared/till/usdc.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { askOwner } from '../../sql/purse/purchases/askedPayments.ts'
import { queuePurchase } from '../../sql/purse/purchases/purchaseJobs.ts'
import {
  type DuePurchase,
  endPurchase,
  findDuePurchase,
  type PurchaseEnd,
  type StartedSend,
  startAsking,
  startSend,
  termsOf,
} from '../../sql/purse/purchases/purchaseSteps.ts'
import type { Reserved } from '../../sql/purse/purchases/reserve.ts'
import { signInAt } from '../../sql/purse/signIn.ts'
import { readChainStatus } from '../../sql/till/watch/chainStatus.ts'
import { type Exchange, headerOf, type OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { decompressed, headerValue } from '../vault/maskedAnswer.ts'
import { wasNotSent } from '../vault/sendFilled.ts'
import { createReservations } from './reservations.ts'
import { type Call, createSellerCalls } from './sellerCalls.ts'
import { createSellerKeys } from './sellerKeys.ts'

type Options = {
  keyring: KeyringSource
  policy: OutboundPolicy & { ca?: string }
  /** Holds the addresses to which the operator forbids payments, in lower case. */
  deniedPayees: ReadonlySet<string>
  /**
   * Limits the gas that the cancellations and transfers of one project's purse may use in a UTC day. Above this limit,
   * the purse signs no payment. Null means no limit.
   */
  dailyGas: number | null
}

/**
 * Lists how many milliseconds pass between two attempts to send the same signed request. The last number in the list
 * applies to all further attempts.
 */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000]
/**
 * Sets the minimum number of seconds until a payment authorization expires, because a seller refuses an authorization
 * that expires sooner.
 */
const EXPIRY_MARGIN_S = 6n
/** Lists the HTTP methods whose requests can be repeated without a side effect (RFC 9110 §9.2.1). */
const SAFE_METHODS: readonly string[] = ['GET', 'HEAD']

/**
 * Makes a purchase: asks the seller for the price, signs one payment authorization within the mandates (spending
 * limits), and sends only this authorization. An interrupted purchase job continues from the stored state: it signs
 * nothing new, and sends the same bytes again.
 */
export const createBuy = (
  { pool, lanes, outcomes }: PoolContext,
  { keyring: source, policy: given, deniedPayees, dailyGas }: Options,
): Task<'buy'> => {
  const policy = { ...given, hidesTrace: true } as const
  const sellers = createSellerCalls(pool, { keyring: source, policy })
  const keysOf = createSellerKeys(policy)
  const reserve = createReservations(pool, source, dailyGas)

  const endFrom =
    (from: 'unsigned' | 'signed') =>
    async ({ id, projectId }: DuePurchase, end: PurchaseEnd): Promise<void> => {
      await outcomes.record(async () =>
        endPurchase(pool, { id, projectId, keyring: await source(pool), from, end }),
      )
    }
  const endUnsigned = endFrom('unsigned')
  const endSigned = endFrom('signed')

  const refuse = (due: DuePurchase, reason: RefusalReason, offer: Offer | null = null) =>
    endUnsigned(due, {
      state: 'refused',
      reason,
      detail: refusalText(reason),
      offer: shown(due, offer),
    })

  async function ask(due: DuePurchase): Promise<void> {
    const chain = await readChainStatus(pool)
    const network = chain?.network ? usdcNetwork(chain.network) : undefined
    if (network === undefined) return refuse(due, 'no_chain')
    if (due.payer === null && due.kind === 'payment') return refuse(due, 'no_purse')
    const request = await startAsking(pool, due.id, await source(pool))
    if (request === null) return
    const asked = await sellers.call(due, request, null)
    if (!isChallenged(asked)) return unpaid(due, asked)
    // The code uses the called URL, in which values have replaced the placeholders. In the requested URL, a placeholder
    // could hide which resource it names.
    const at = { url: normalUrl(asked.url).url, network }
    const header = await signIn(due, asked.exchange, at)
    if (header === null) return choose(due, asked, at)
    const signedIn = await sellers.call(due, request, header)
    return isChallenged(signedIn) ? choose(due, signedIn, at) : unpaid(due, signedIn)
  }

  /** Ends a purchase for which the seller demanded no payment. */
  async function unpaid(due: DuePurchase, call: Call): Promise<void> {
    if (call.kind === 'unfilled') {
      return endUnsigned(due, { state: 'refused', reason: 'credential', detail: call.detail })
    }
    const { exchange, secrets } = call
    return endUnsigned(
      due,
      exchange.ok ? await answered(due, exchange, secrets) : unasked(exchange),
    )
  }

  /**
   * Returns the HTTP header with which the buyer signs in at a seller. Returns `null` if the seller does not offer
   * sign-in, or if the buyer has never paid the seller.
   */
  async function signIn(
    due: DuePurchase,
    answer: Answer,
    { url, network }: Place,
  ): Promise<PaymentHeader | null> {
    if (due.kind === 'quote' || due.tool !== null) return null
    const extensions = (await challengeOf(answer))?.extensions
    const challenge = readSignIn(extensions, { url, caip2: network.caip2, nowMs: Date.now() })
    if (challenge === null) return null
    const at = { url, network: network.network }
    const keyring = await source(pool)
    return outcomes.record(() => signInAt(pool, { id: due.id, challenge, at, keyring }))
  }

  async function choose(
    due: DuePurchase,
    { exchange, secrets }: Challenged,
    { url, network }: Place,
  ): Promise<void> {
    const challenge = await challengeOf(exchange)
    if (challenge === null) return refuse(due, 'malformed_challenge')
    const chosen = chooseOffer(challenge, { url, network, payer: due.payer ?? '' })
    if (!chosen.ok) return refuse(due, chosen.reason)
    if (sellers.reveals(secrets, chosen.offer.payTo)) return refuse(due, 'bad_payee')
    await decide(due, { url, offer: chosen.offer })
  }

  async function decide(
    due: DuePurchase,
    { url, offer }: { url: string; offer: Offer },
  ): Promise<void> {
    if (deniedPayees.has(offer.payTo)) return refuse(due, 'payee_denied', offer)
    if (due.kind === 'quote') return endUnsigned(due, { state: 'quoted', offer: shown(due, offer) })
    const hash = termsHash(offer)
    if (due.approvedHash !== null && !due.approvedHash.equals(hash)) {
      return refuse(due, 'terms_changed', offer)
    }
    const reserved: Reserved = await outcomes.record(() =>
      reserve(due.projectId, { id: due.id, url, offer, termsHash: hash }),
    )
    switch (reserved.kind) {
      case 'refused':
        return refuse(due, reserved.reason, offer)
      case 'ask':
        await outcomes.record(() =>
          askOwner(pool, { id: due.id, offer: shown(due, offer), reason: reserved.reason, hash }),
        )
        return
      case 'signed': {
        const { payer, content, validBefore } = reserved
        const signed = { ...due, terms: termsOf(shown(due, offer), payer, validBefore) }
        return send(signed, { content, validBefore, sends: 1 })
      }
      default:
        // If the database's reply to the commit was lost, the signature may nevertheless be stored. Therefore the code
        // reads the purchase again.
        return resume(await findDuePurchase(pool, due.id))
    }
  }

  /** Sends a signed purchase request again, because the job was interrupted or because the seller has not decided. */
  async function resume(due: DuePurchase | null): Promise<void> {
    if (due?.state !== 'signed') return
    const started = await startSend(pool, due.id, await source(pool))
    if (started === null) return endSigned(due, EXPIRED)
    if (started === 'stopped') return endSigned(due, STOPPED)
    await send(due, started)
  }

  /**
   * Sends the signed request to the seller. Queues the next attempt to send the request if the seller has not decided
   * and the signed authorization is still valid.
   */
  async function send(due: DuePurchase, started: StartedSend): Promise<void> {
    const { content, sends, validBefore } = started
    const call = await sellers.call(due, content.request, content.header)
    if (call.kind === 'unfilled') {
      const detail = `${call.detail}; the payment was signed before`
      return endSigned(due, { state: 'unknown', reason: 'credential', detail })
    }
    const { exchange: answer, secrets } = call
    const settlement = answer.ok
      ? readSellerSettlement(
          headerOf(answer.headers, 'payment-response') ??
            headerOf(answer.headers, 'x-payment-response'),
        )
      : null
    const pauseMs = PAUSES_MS[Math.min(sends, PAUSES_MS.length) - 1]!
    const againAtMs = Date.now() + pauseMs
    const isLive = BigInt(Math.ceil(againAtMs / 1000)) < validBefore - EXPIRY_MARGIN_S
    if (isUndecided(answer.ok ? answer.status : null, settlement) && isLive) {
      return queuePurchase(pool, due.id, pauseMs)
    }
    const claimedTx = settlement?.transaction ?? null
    const said = {
      claimedTx: claimedTx !== null && sellers.reveals(secrets, claimedTx) ? null : claimedTx,
      ...(await proofs(due, settlement, content.request.url)),
    }
    if (!answer.ok) {
      const detail = `${answer.detail}; the seller may have taken the payment`
      return endSigned(due, { state: 'unknown', reason: 'no_answer', detail, ...said })
    }
    await endSigned(due, { ...(await answered(due, answer, secrets)), ...said })
  }

  /**
   * Returns the facts about a purchase that the seller's signatures prove. If the purchase request contained a
   * credential, no text of the seller is stored, because this text could contain the secret.
   */
  async function proofs(due: DuePurchase, settlement: SellerSettlement | null, url: string) {
    const { terms } = due
    if (terms === null || due.credentialName !== null) return {}
    const network = usdcNetwork(terms.network)
    if (network === undefined) return {}
    const { origin, pathname } = new URL(url)
    // A seller may sign the path as the request spelled it, or in its normal form, so the check accepts both.
    const bare = `${origin}${pathname}`
    const subject: ProofSubject = {
      ...terms,
      caip2: network.caip2,
      transaction: settlement?.transaction ?? null,
      resources: [terms.resource, url, bare, normalUrl(url).url].filter((one) => one !== null),
    }
    const receipt = settlement?.receipt ?? null
    const findKey = keysOf(due.host)
    const verdict = (
      kind: 'offer' | 'receipt',
      kept: string | null,
    ): Promise<ProofVerdict | null> =>
      kept === null ? Promise.resolve(null) : judgeProof(kind, kept, { subject, findKey })
    return {
      sellerReceipt: receipt,
      receiptVerdict: await verdict('receipt', receipt),
      offerVerdict: await verdict('offer', terms.signedOffer),
    }
  }

  async function answered(
    due: DuePurchase,
    answer: Answer,
    secrets: readonly string[],
  ): Promise<PurchaseEnd> {
    const state = due.kind === 'quote' ? 'quoted' : 'answered'
    return { state, answer: await sellers.masked(due, answer, secrets) }
  }

  return async ({ purchaseId }) => {
    const due = await findDuePurchase(pool, purchaseId)
    if (due === null) return
    const delayMs = sellers.delayMs(due)
    if (delayMs > 0) return queuePurchase(pool, due.id, delayMs)
    // A signed payment expires soon, so it has a separate lane (queue) and does not wait behind purchases without a
    // payment.
    const step = due.state === 'signed' ? 'pay' : 'ask'
    const turn = await lanes.enter(`${step}:${due.projectId} ${due.host}`, due.projectId)
    if (!turn.granted) return queuePurchase(pool, due.id, turn.returnInMs)
    try {
      await carryOut(due)
    } finally {
      turn.leave()
    }
  }

  async function carryOut(due: DuePurchase): Promise<void> {
    if (due.state === 'signed') return resume(due)
    // An earlier run was interrupted, and the seller may already have acted on its request. Therefore the code repeats
    // only a request with a safe HTTP method, and only while the agent still expects a payment.
    if (due.state === 'asking' && (due.isLate || !SAFE_METHODS.includes(due.method)))
      return endUnsigned(due, CUT_OFF)
    if (due.state === 'queued' && due.isLate) return endUnsigned(due, LATE)
    if (due.state !== 'queued' && due.state !== 'asking') return
    await ask(due)
  }
}

type Answer = Extract<Exchange, { ok: true }>
type Place = { url: string; network: UsdcNetwork }

type Challenged = Extract<Call, { kind: 'made' }> & { exchange: Answer }

const isChallenged = (call: Call): call is Challenged =>
  call.kind === 'made' && call.exchange.ok && call.exchange.status === 402

/** Returns the challenge in a 402 response. Some servers compress the body although the request forbids it. */
async function challengeOf(answer: Answer) {
  const body = await decompressed(answer.body, headerValue(answer, 'content-encoding'))
  const text = typeof body === 'string' ? '' : Buffer.from(body).toString('utf8')
  return readChallenge(headerOf(answer.headers, 'payment-required'), text)
}

/**
 * Returns the offer of a seller in a form that the agent may see, because a seller that knows a secret of the vault
 * could repeat this secret in the texts of its offer.
 */
function shown<Given extends Offer | null>({ credentialName }: DuePurchase, offer: Given): Given {
  return offer === null || credentialName === null ? offer : { ...offer, ...WORDLESS }
}

function unasked(failure: Extract<Exchange, { ok: false }>): PurchaseEnd {
  const { detail } = failure
  if (wasNotSent(failure)) return { state: 'failed', reason: 'not_reached', detail }
  return { state: 'unknown', reason: 'no_answer', detail: `${detail}; nothing was signed` }
}

const EXPIRED: PurchaseEnd = {
  state: 'unknown',
  reason: 'expired',
  detail: 'the seller gave no answer before the authorization ended; nothing was taken',
}

const STOPPED: PurchaseEnd = {
  state: 'unknown',
  reason: 'frozen',
  detail:
    'the owner stopped the payment before the seller answered; it is cancelled unless the seller has taken it',
}

const LATE: PurchaseEnd = {
  state: 'failed',
  reason: 'not_reached',
  detail: 'it waited too long for a worker; nothing was sent',
}

const CUT_OFF: PurchaseEnd = {
  state: 'unknown',
  reason: 'cut_off',
  detail: 'the worker was cut off before any payment; nothing was signed',
}
