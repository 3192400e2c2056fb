import { sign } from 'viem/accounts'
import { chooseOffer, readChallenge, type SellerChallenge } from '../../shared/purse/offers.ts'
import {
  type DigestSigner,
  type PaymentHeader,
  signPayment,
} from '../../shared/purse/paymentHeader.ts'
import { refusalText } from '../../shared/purse/refusal.ts'
import { DEVNET_ACCOUNTS, DEVNET_NETWORK } from '../../shared/till/devnetAccounts.ts'
import { USDC_NETWORKS } from '../../shared/till/usdc.ts'
import {
  type DueTrial,
  endTrial,
  findDueTrial,
  queueTrial,
  storePayment,
  TRIAL_BODY_MAX,
  TRIAL_CHALLENGE_MAX,
} from '../../sql/till/endpoints/endpointTrials.ts'
import {
  type Exchange,
  guardedExchange,
  headerOf,
  type OutboundPolicy,
} from '../http/guardedRequest.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { askUnpaid, EMPTY_CALL, type EmptyCall } from './emptyCall.ts'

const ASK_TIMEOUT_MS = 10_000
/**
 * Limits in milliseconds how long a request with a payment to an endpoint may take. The limit is long, because a seller
 * settles the payment on the chain before the response.
 */
const PAY_TIMEOUT_MS = 30_000

const { privateKey, address } = DEVNET_ACCOUNTS.payer
/**
 * Signs payments for the payer account of the devnet. The private key of the devnet’s payer is public, and worthless on
 * every real chain.
 */
const devnetPayer: DigestSigner = {
  address,
  sign: (hash) => sign({ hash, privateKey, to: 'hex' }),
}

type End = Parameters<typeof endTrial>[2]

/**
 * Requests a paid endpoint as a buyer does. If `buy` is set, pays the endpoint once from the payer account of the
 * devnet. If the job of this trial (test request) was interrupted, its next run sends the stored bytes of the payment
 * again.
 */
export const createTryEndpoint =
  ({ pool, lanes, outcomes }: PoolContext, policy: OutboundPolicy): Task<'try_endpoint'> =>
  async ({ trialId }) => {
    const due = await findDueTrial(pool, trialId)
    if (due === null) return
    const turn = await lanes.enter(`try:${due.projectId}`, due.projectId)
    if (!turn.granted) {
      return queueTrial(pool, trialId, turn.returnInMs)
    }
    const end = (given: End) => outcomes.record(() => endTrial(pool, trialId, given))
    const pay = async (payment: PaymentHeader, method: DueTrial['method']) =>
      end(paidEnd(await send(policy, { url: due.url, call: EMPTY_CALL[method], payment })))
    try {
      if (due.payment !== null) return await pay(due.payment, due.method)
      const asked = await ask(policy, due.url)
      if ('end' in asked) return await end(asked.end)
      const { challenge, method } = asked
      const shown = shownChallenge(challenge)
      if (JSON.stringify(shown).length > TRIAL_CHALLENGE_MAX) {
        return await end({ state: 'failed', detail: 'its challenge is too long', status: 402 })
      }
      if (!due.buy) return await end({ state: 'asked', challenge: shown, status: 402 })
      const network = USDC_NETWORKS[DEVNET_NETWORK]
      const chosen = chooseOffer(challenge, { url: due.url, network, payer: address })
      if (!chosen.ok) {
        const detail = refusalText(chosen.reason)
        return await end({ state: 'failed', detail, challenge: shown, status: 402 })
      }
      const { header } = await signPayment(chosen.offer, devnetPayer)
      const wanted = { id: trialId, method, challenge: shown, payment: header }
      const stored = await storePayment(pool, wanted)
      if (stored !== null) await pay(stored, method)
    } finally {
      turn.leave()
    }
  }

type Asked = { challenge: SellerChallenge; method: DueTrial['method'] } | { end: End }

/** Requests an endpoint without a payment, and reads the 402 response of the endpoint. */
async function ask(policy: OutboundPolicy, url: string): Promise<Asked> {
  const { answer, method } = await askUnpaid((call) => send(policy, { url, call, payment: null }))
  if (!answer.ok) return { end: { state: 'failed', detail: answer.detail } }
  const said = { status: answer.status, body: textOf(answer.body) }
  if (answer.status !== 402) {
    return { end: { state: 'failed', detail: `answered ${answer.status}, expected 402`, ...said } }
  }
  const challenge = readChallenge(
    headerOf(answer.headers, 'payment-required'),
    answer.body.toString(),
  )
  if (challenge !== null) return { challenge, method }
  return { end: { state: 'failed', detail: 'answered 402 without a challenge', ...said } }
}

const send = (
  policy: OutboundPolicy,
  { url, call, payment }: { url: string; call: EmptyCall; payment: PaymentHeader | null },
): Promise<Exchange> =>
  guardedExchange({
    ...policy,
    url,
    ...call,
    timeoutMs: payment === null ? ASK_TIMEOUT_MS : PAY_TIMEOUT_MS,
    headers: { ...call.headers, ...(payment === null ? {} : { [payment.name]: payment.value }) },
  })

function paidEnd(answer: Exchange): End {
  if (!answer.ok) {
    const detail = `${answer.detail}; the seller may have taken the payment`
    return { state: 'failed', detail }
  }
  const said = { status: answer.status, body: textOf(answer.body) }
  return answer.status < 400
    ? { state: 'paid', ...said }
    : { state: 'failed', detail: `answered ${answer.status} to the payment`, ...said }
}

/** Returns the 402 challenge as the seller sent it, without the values that this service derived from the challenge. */
function shownChallenge({ x402Version, entries, resource, extensions, error }: SellerChallenge) {
  return {
    x402Version,
    ...(error === null ? {} : { error }),
    ...(resource === null ? {} : { resource }),
    accepts: entries.map(({ raw }) => raw),
    ...(extensions === null ? {} : { extensions }),
  }
}

/** Returns a response body as text without NUL characters, because PostgreSQL cannot store NUL. */
const textOf = (body: Buffer): string =>
  body.toString('utf8').replaceAll('\0', '\ufffd').slice(0, TRIAL_BODY_MAX)
