import { describe, expect, test } from 'bun:test'
import {
  nextWebhookDelayS,
  WEBHOOK_ATTEMPTS_MAX,
  webhookVerdict,
} from '../../../shared/events/webhookSchedule.ts'

describe('nextWebhookDelayS returns the delay before the next delivery attempt', () => {
  test('the delays between webhook attempts are those of docs/contract.md §7, and there is no delay after the last attempt', () => {
    expect([1, 2, 3, 4, 5, 6].map(nextWebhookDelayS)).toEqual([1, 4, 16, 64, 300, null])
    expect(WEBHOOK_ATTEMPTS_MAX).toBe(6)
  })

  test.each([0, -1, 7, 1.5, Number.NaN, Number.POSITIVE_INFINITY])(
    'a webhook attempt with the number %p is refused with a RangeError',
    (attempt) => {
      expect(() => nextWebhookDelayS(attempt)).toThrow(RangeError)
    },
  )
})

describe('webhookVerdict decides from the HTTP status whether a webhook delivery succeeded, ends or is retried', () => {
  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [299, 'delivered'],
    [300, 'aborted'],
    [302, 'aborted'],
    [307, 'aborted'],
    [400, 'aborted'],
    [404, 'aborted'],
    [408, 'aborted'],
    [410, 'aborted'],
    [429, 'aborted'],
    [499, 'aborted'],
    [500, 'retry'],
    [503, 'retry'],
    [599, 'retry'],
    [null, 'retry'],
  ] as const)(
    'a webhook response with the HTTP status %p gets the verdict %s',
    (status, verdict) => {
      expect(webhookVerdict(status)).toBe(verdict)
    },
  )
})
