import type { Bought } from '../audit/ledger.ts'
import type { Random } from '../random.ts'
import { type Load, rounds, untilDecided } from './load.ts'

/**
 * Runs a buying agent with a purse (wallet). The agent repeats each purchase request with the same Idempotency-Key
 * until the purchase has ended.
 */
export function buy(load: Load, random: Random, name: string): Promise<void> {
  return rounds(load, random, [100, 800], async (n) => {
    const bought: Bought = {
      key: `buy-${name}-${n}`,
      told: 'unknown',
      purchaseIds: [],
      refusal: null,
    }
    load.ledger.purchases.push(bought)
    bought.told = await untilDecided(load, random, async () => {
      const answer = await load.peer.call({
        kind: 'buy',
        method: 'POST',
        path: '/v0/purse/pay?timeout=5',
        body: { url: `${load.paidResource}?n=${bought.key}`, maxAmount: '0.01' },
        idempotencyKey: bought.key,
      })
      if (answer === null) return 'unknown'
      const { status, body } = answer
      if (status === 200 || status === 202) bought.purchaseIds.push(body.purchaseId)
      else bought.refusal = `${status} ${body?.message}`
      return status === 200 ? 'accepted' : status === 202 ? 'unknown' : 'refused'
    })
  })
}
