import { expect, test } from 'bun:test'
import { type MailRoute, nextMailDelayS } from '../../../shared/mail/mailRetry.ts'

const MINUTE_S = 60
const HOUR_S = 3_600

/**
 * Returns the times of the delivery attempts of a mail if every attempt fails at once. The times are in seconds after
 * the service accepted the mail.
 */
function attemptsAt(route: MailRoute): number[] {
  const at = [0]
  for (;;) {
    const delayS = nextMailDelayS(route, at.length, at.at(-1)!)
    if (delayS === null) return at
    at.push(at.at(-1)! + delayS)
  }
}

test('mail that the service delivers itself is retried twice in the first hour, then every 30 minutes to 3 hours for five days', () => {
  const at = attemptsAt('direct')
  expect(at.slice(1).filter((s) => s <= HOUR_S).length).toBeGreaterThanOrEqual(2)
  const gaps = at.slice(2).map((s, n) => s - at[n + 1]!)
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(30 * MINUTE_S)
  expect(Math.max(...gaps)).toBeLessThanOrEqual(3 * HOUR_S)
  expect(at.at(-1)!).toBeGreaterThan(4.5 * 24 * HOUR_S)
  expect(at.at(-1)!).toBeLessThanOrEqual(5 * 24 * HOUR_S)
})

test('mail that goes through a relay is first retried within 15 seconds, and last within a day', () => {
  const at = attemptsAt('relay')
  expect(at[1]).toBeLessThanOrEqual(15)
  expect(at.at(-1)!).toBeGreaterThan(20 * HOUR_S)
  expect(at.at(-1)!).toBeLessThanOrEqual(24 * HOUR_S)
})

test('the service makes no attempt to send a mail after the end of the retry period', () => {
  expect(nextMailDelayS('relay', 1, 24 * HOUR_S)).toBeNull()
  expect(nextMailDelayS('direct', 1, 24 * HOUR_S)).not.toBeNull()
  expect(nextMailDelayS('direct', 99, 5 * 24 * HOUR_S)).toBeNull()
})
