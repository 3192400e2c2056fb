import { PRICE, pay as sign } from '../../support/till/till.ts'
import type { Paid, RedeemAnswer, Told } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, rounds, untilDecided } from './load.ts'

const REDEEM_TIMEOUT_MS = 10_000
/**
 * Lists the validity periods of payments in seconds. Most payments are valid for longer than any fault lasts, and some
 * expire before their settlement.
 */
const VALID_S = [300, 300, 300, 300, 12]

/**
 * Runs a buying client, which requests the price, signs a payment, and redeems it until the service accepts or refuses
 * it.
 */
export function pay(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [50, 700], async (n) => {
    const challenge = await load.seller.call({
      kind: 'challenge',
      method: 'POST',
      path: '/v0/payments/challenge',
      body: { amount: PRICE, resource: load.resource },
    })
    if (challenge !== null && challenge.status !== 200) {
      const { status, body } = challenge
      load.ledger.surprises.push(`the challenge was refused: ${status} ${body?.message}`)
    }
    const validBefore = BigInt(Math.floor(Date.now() / 1000) + random.pick(VALID_S))
    const { authorization, header } = await sign({ validBefore })
    const paid: Paid = {
      nonce: authorization.nonce.toLowerCase(),
      payer: authorization.from,
      amountAtomic: authorization.value.toString(),
      told: 'unknown',
      answers: [],
    }
    load.ledger.payments.push(paid)
    const key = `redeem-${name}-${n}`
    const attempt = (own: string) => redeem(load, paid, { header, key: own })
    const rival = random.chance(0.1)
      ? untilDecided(load, random, () => attempt(`${key}-rival`))
      : null
    paid.told = await untilDecided(load, random, () => attempt(key))
    await rival
    // The redeem call is sometimes repeated: with the same Idempotency-Key, as by a client that has lost the response,
    // or with a different key, as by another client.
    if (random.chance(0.15)) await attempt(key)
    if (random.chance(0.15)) await attempt(`${key}-stranger`)
  })
}

async function redeem(
  load: Load,
  paid: Paid,
  { header, key }: { header: string; key: string },
): Promise<Told> {
  const answer = await load.seller.call({
    kind: 'redeem',
    method: 'POST',
    path: '/v0/payments/redeem',
    body: { paymentHeader: header, resource: load.resource, amount: PRICE },
    idempotencyKey: key,
    timeoutMs: REDEEM_TIMEOUT_MS,
  })
  if (answer === null) return 'unknown'
  const { body, status } = answer
  const told: RedeemAnswer = {
    key,
    ok: body.ok === true,
    reason: body.reason ?? (status === 200 ? null : `${status} ${body.message}`),
    paymentId: body.paymentId ?? null,
    txHash: body.txHash ?? null,
  }
  if (told.ok) load.pulses.beat('redeem')
  if (told.reason === 'settlement_pending') return 'unknown'
  paid.answers.push(told)
  return told.ok ? 'accepted' : 'refused'
}
