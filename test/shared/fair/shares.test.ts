import { expect, test } from 'bun:test'
import { Shares, type ShareTurn } from '../../../shared/fair/shares.ts'

/**
 * Requests slots for running jobs until a request is refused.
 * @returns the slots that were granted
 */
function fill(shares: Shares, sharers: (n: number) => string[]): ShareTurn[] {
  const places: ShareTurn[] = []
  for (let n = 0; ; n++) {
    const place = shares.enter(sharers(n))
    if (!place.granted) return places
    places.push(place)
  }
}

test('one inbox can take half of the free job slots, the next inbox half of the remaining slots, and a third inbox still gets a job slot', () => {
  const shares = new Shares(200)
  expect(fill(shares, (n) => ['flooded', `network ${n}`])).toHaveLength(100)
  expect(fill(shares, (n) => ['second', `net ${n}`])).toHaveLength(50)
  expect(shares.enter(['quiet', 'elsewhere']).granted).toBe(true)
})

test('one network can take half of the free job slots, even if it writes to many inboxes', () => {
  const shares = new Shares(200)
  expect(fill(shares, (n) => [`inbox ${n}`, '192.0.2.1'])).toHaveLength(100)
  expect(shares.enter(['inbox 1', '192.0.2.2']).granted).toBe(true)
})

test('if an inbox has no free job slot, each of its refused mail jobs gets a later retry time than the job before', () => {
  const shares = new Shares(10, () => 0)
  const places = fill(shares, () => ['flooded'])
  const times = Array.from({ length: 3 }, () => {
    const place = shares.enter(['flooded'])
    return place.granted ? -1 : place.returnInMs
  })
  expect(times).toEqual([260, 270, 280])
  for (const place of places) if (place.granted) place.leave()
  expect(shares.enter(['flooded']).granted).toBe(true)
})

test('if batches of mail are refused, each batch gets a later retry time than the batch before it, by the time that the earlier batch takes to parse', () => {
  const shares = new Shares(10, () => 0)
  fill(shares, () => ['flooded'])
  const times = Array.from({ length: 3 }, () => shares.returnInMs('flooded', 32))
  expect(times).toEqual([260, 292, 324])
})
