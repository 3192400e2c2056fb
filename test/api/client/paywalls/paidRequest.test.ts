/** Tests which payments a paywall reads, because a buyer may send any text or object. */
import { expect, test } from 'bun:test'
import type { Challenge } from '../../../../api/client/calls/payments.ts'
import { lastOffer, storeOffer } from '../../../../api/client/paywalls/lastOffers.ts'
import { isReadable } from '../../../../api/client/paywalls/paidRequest.ts'
import { shopService } from '../../../support/till/headers/shopService.ts'

test('a payment that is an object has at most 1,000,000 bytes, 15,000 values and 90 levels', () => {
  const long = (chars: number) => ({ a: 'x'.repeat(chars - '{"a":""}'.length) })
  expect([isReadable(long(1_000_000)), isReadable(long(1_000_001))]).toEqual([true, false])
  // The service counts one JSON value for the whole text, one for the opening bracket, and one for each comma. A list
  // therefore counts as one value more than it has items.
  const many = (values: number) => Array(values - 1).fill(1)
  expect([isReadable(many(15_000)), isReadable(many(15_001))]).toEqual([true, false])
  expect(isReadable({ a: '€'.repeat(400_000) })).toBe(false)
  const deep = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`)
  expect([isReadable(deep(90)), isReadable(deep(91))]).toEqual([true, false])
})

test('the paywall stores the last 1,000 offers of a client, and forgets older offers', () => {
  const purser = shopService().purser
  const challenge = { accepts: [{ maxTimeoutSeconds: 60 }] } as Challenge
  for (let n = 0; n < 1_000; n++) storeOffer(purser, { n }, challenge)
  expect(lastOffer(purser, { n: 0 })).toBe(challenge)
  storeOffer(purser, { n: 1_000 }, challenge)
  expect([lastOffer(purser, { n: 0 }), lastOffer(purser, { n: 1 })]).toEqual([null, challenge])
})
