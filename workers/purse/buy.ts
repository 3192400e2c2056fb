import type { Offer } from '../../shared/purse/offers.ts'
import { chooseOffer, readChallenge } from '../../shared/purse/offers.ts'
import { type RefusalReason, refusalText } from '../../shared/purse/refusal.ts'
import { isUndecided, readSellerSettlement } from '../../shared/purse/sellerSettlement.ts'
import { termsHash } from '../../shared/purse/termsHash.ts'
import { usdcNetwork } from '../../shared/till/usdc.ts'
import type { UseRequest } from '../../shared/vault/useRequest.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import { askOwner } from '../../sql/purse/askedPayments.ts'
import {
  type DuePurchase,
  endPurchase,
  findDuePurchase,
  type PurchaseEnd,
  startAsking,
  startSend,
} from '../../sql/purse/purchaseSteps.ts'
import { queuePurchase } from '../../sql/purse/purchases.ts'
import { type Reserved, reserve } from '../../sql/purse/reserve.ts'
import { readChainStatus } from '../../sql/till/watch/chainStatus.ts'
import { type Exchange, guardedExchange, type OutboundPolicy } from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { ANSWER_BYTES_MAX, maskedAnswer } from '../vault/maskedAnswer.ts'
import { NOT_SENT } from '../vault/sendFilled.ts'

type Options = {
  keyring: KeyringSource
  policy: OutboundPolicy & { ca?: string }
  /** Addresses in lower case that the operator denies. */
  deniedPayees: ReadonlySet<string>
}

/** A seller that settles on the chain answers within this, or the request is repeated. */
const TIMEOUT_MS = 30_000
/** Pauses between sends of the same signed request; the last one repeats. */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000]
/** A seller refuses an authorization that ends sooner. */
const EXPIRY_MARGIN_S = 6n
/** Requests that may be repeated without an effect (RFC 9110 §9.2.1). */
const SAFE_METHODS: readonly string[] = ['GET', 'HEAD']

/**
 * Buys: asks the seller, signs one authorization within the mandates, and sends that one only. A job that was cut off
 * goes on from the stored state: it signs nothing anew, and repeats the same bytes.
 */
export const createBuy = (
  { pool, outcomes }: PoolContext,
  { keyring: source, policy, deniedPayees }: Options,
): Task<'buy'> => {
  async function finish({ id }: DuePurchase, end: PurchaseEnd): Promise<void> {
    await outcomes.record(async () => endPurchase(pool, { id, keyring: await source(pool), end }))
  }

  const refuse = (due: DuePurchase, reason: RefusalReason, offer: Offer | null = null) =>
    finish(due, { state: 'refused', reason, detail: refusalText(reason), offer })

  async function ask(due: DuePurchase): Promise<void> {
    const chain = await readChainStatus(pool)
    const network = chain?.network ? usdcNetwork(chain.network) : undefined
    if (network === undefined) return refuse(due, 'no_chain')
    if (due.payer === null && due.kind === 'payment') return refuse(due, 'no_purse')
    const request = await startAsking(pool, due.id, await source(pool))
    if (request === null) return
    const answer = await exchange(request)
    if (!answer.ok) return finish(due, unasked(answer))
    if (answer.status !== 402) return finish(due, await answered(due, answer))
    const challenge = readChallenge(
      headerOf(answer, 'payment-required'),
      answer.body.toString('utf8'),
    )
    if (challenge === null) return refuse(due, 'malformed_challenge')
    const url = bareUrl(request.url)
    const chosen = chooseOffer(challenge, { url, network, payer: due.payer ?? '' })
    if (!chosen.ok) return refuse(due, chosen.reason)
    await decide(due, { url, offer: chosen.offer })
  }

  async function decide(
    due: DuePurchase,
    { url, offer }: { url: string; offer: Offer },
  ): Promise<void> {
    if (deniedPayees.has(offer.payTo)) return refuse(due, 'payee_denied', offer)
    if (due.kind === 'quote') return finish(due, { state: 'quoted', offer })
    const keyring = await source(pool)
    const hash = termsHash(offer)
    if (due.approvedHash !== null && !due.approvedHash.equals(hash)) {
      return refuse(due, 'terms_changed', offer)
    }
    const reserved: Reserved = await outcomes.record(() =>
      reserve(pool, { id: due.id, url, offer, keyring, termsHash: hash }),
    )
    switch (reserved.kind) {
      case 'refused':
        return refuse(due, reserved.reason, offer)
      case 'ask':
        await outcomes.record(() =>
          askOwner(pool, { id: due.id, offer, reason: reserved.reason, hash }),
        )
        return
      default: {
        // Also after a commit whose answer was lost: the purchase is signed then.
        const signed = await findDuePurchase(pool, due.id)
        if (signed?.state === 'signed') await send(signed)
      }
    }
  }

  /** Sends the signed request, and comes back while the seller has not decided and the signature lives. */
  async function send(due: DuePurchase): Promise<void> {
    const started = await startSend(pool, due.id, await source(pool))
    if (started === null) return finish(due, EXPIRED)
    const { content, sends, validBefore } = started
    const { request, header } = content
    const headers = { ...request.headers, [header.name]: header.value }
    const answer = await exchange({ ...request, headers })
    const settlement = answer.ok
      ? readSellerSettlement(
          headerOf(answer, 'payment-response') ?? headerOf(answer, 'x-payment-response'),
        )
      : null
    const pauseMs = PAUSES_MS[Math.min(sends, PAUSES_MS.length) - 1]!
    const againAt = new Date(Date.now() + pauseMs)
    const isLive = BigInt(Math.ceil(againAt.getTime() / 1000)) < validBefore - EXPIRY_MARGIN_S
    if (isUndecided(answer.ok ? answer.status : null, settlement) && isLive) {
      return queuePurchase(pool, due.id, againAt)
    }
    const said = {
      claimedTx: settlement?.transaction ?? null,
      sellerReceipt: settlement?.receipt ?? null,
    }
    if (!answer.ok) {
      const detail = `${answer.detail}; the seller may have taken the payment`
      return finish(due, { state: 'unknown', reason: 'no_answer', detail, ...said })
    }
    await finish(due, { ...(await answered(due, answer)), ...said })
  }

  async function answered(
    due: DuePurchase,
    answer: Extract<Exchange, { ok: true }>,
  ): Promise<PurchaseEnd> {
    const state = due.kind === 'quote' ? 'quoted' : 'answered'
    return { state, answer: await maskedAnswer(answer, []) }
  }

  const exchange = ({ url, method, headers, body }: UseRequest): Promise<Exchange> =>
    guardedExchange({
      ...policy,
      url,
      method,
      headers,
      timeoutMs: TIMEOUT_MS,
      responseBytesMax: ANSWER_BYTES_MAX,
      ...(body === null ? {} : { body }),
    })

  return async ({ purchaseId }) => {
    const due = await findDuePurchase(pool, purchaseId)
    if (due === null) return
    if (due.state === 'signed') return send(due)
    // After an approval the seller is asked anew: it answered 402 before, and has not acted.
    if (due.state === 'asking' && due.approvedHash === null && !SAFE_METHODS.includes(due.method))
      return finish(due, CUT_OFF)
    if (due.state !== 'queued' && due.state !== 'asking') return
    await ask(due)
  }
}

/** A URL without query and fragment. */
function bareUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

function headerOf({ headers }: { headers: string[] }, wanted: string): string | null {
  const at = headers.findIndex((name, n) => n % 2 === 0 && name.toLowerCase() === wanted)
  return at === -1 ? null : headers[at + 1]!
}

function unasked({ kind, detail }: Extract<Exchange, { ok: false }>): PurchaseEnd {
  if (kind === 'blocked' || (kind === 'network' && NOT_SENT.test(detail))) {
    return { state: 'failed', reason: 'not_reached', detail }
  }
  return { state: 'unknown', reason: 'no_answer', detail: `${detail}; nothing was signed` }
}

const EXPIRED: PurchaseEnd = {
  state: 'unknown',
  reason: 'expired',
  detail: 'the seller gave no answer before the authorization ended; nothing was taken',
}

const CUT_OFF: PurchaseEnd = {
  state: 'unknown',
  reason: 'cut_off',
  detail: 'the worker was cut off before any payment; nothing was signed',
}
