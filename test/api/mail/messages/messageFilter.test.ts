/** Tests how the service reads the filters of a message list, and which errors name a wrong filter. */
import { describe, expect, test } from 'bun:test'
import { readMessageFilter } from '../../../../api/mail/messages/messageFilter.ts'
import { LABELS_MAX } from '../../../../sql/mail/messages/messageLabels.ts'

const faultOf = (query: Parameters<typeof readMessageFilter>[0]) => {
  try {
    readMessageFilter(query)
    return 'read'
  } catch (error) {
    return (error as Error).message
  }
}

describe('the filters after and before of the message list accept only a valid time', () => {
  test.each([
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31t09:30z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00.123456789+02:00', '2026-01-31T07:30:00.123Z'],
    ['2026-01-01T23:59:59-01:00', '2026-01-02T00:59:59.000Z'],
    ['2028-02-29', '2028-02-29T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ])('the message filters after and before accept the time %s', (text, iso) => {
    const { after, before } = readMessageFilter({ after: text, before: text })
    expect([after?.toISOString(), before?.toISOString()]).toEqual([iso, iso])
  })

  test.each([
    ...['', 'today', '2026-01-31T09:30:00', '2026-01-31 09:30Z', ' 2026-01-31', '2026-1-31'],
    ...['2026-13-01', '2026-00-01', '2026-01-32', '2026-02-30', '2027-02-29', '2026-04-31T10:00Z'],
    ...['2026-01-01T24:00Z', '2026-01-01T10:60Z', '2026-01-01T10:00+24:00', '2026-01-31T09Z'],
  ])('the message filters after and before refuse the text %j, which is no time', (text) => {
    const message = 'must be an ISO 8601 time such as 2026-01-31T09:30:00Z, or a date'
    expect(faultOf({ after: text })).toBe(`after ${message}`)
    expect(faultOf({ before: text })).toBe(`before ${message}`)
  })
})

test('message filters that a query omits exclude no message', () => {
  const nothing = { labels: [], queries: [], after: null, before: null, deliveryStatus: null }
  expect(readMessageFilter({})).toEqual(nothing)
  expect(readMessageFilter({ labels: '' })).toEqual(nothing)
})

test('each word filter of a message list (q, from, to, subject) adds one search query, and an error in a query names its filter', () => {
  const filter = { q: 'invoice', from: 'ada@example.com', to: 'example.com', subject: 'second' }
  expect(readMessageFilter(filter).queries.length).toBe(4)
  expect(readMessageFilter({ ...filter, deliveryStatus: 'sent' }).deliveryStatus).toBe('sent')
  for (const name of ['q', 'from', 'to', 'subject'] as const)
    expect(faultOf({ ...filter, [name]: '!' })).toStartWith(`${name} must `)
})

describe('the labels filter of the message list accepts only valid labels', () => {
  const message = 'labels must be at most 50 labels of 1 to 64 characters, separated by commas'
  const many = (count: number) => Array.from({ length: count }, (_, n) => `l${n}`).join(',')

  test('the labels filter ignores repeated labels and the blanks around labels', () => {
    expect(readMessageFilter({ labels: ' a, b b ,a' }).labels).toEqual(['a', 'b b'])
    expect(readMessageFilter({ labels: 'x'.repeat(64) }).labels).toEqual(['x'.repeat(64)])
    expect(readMessageFilter({ labels: many(LABELS_MAX) }).labels.length).toBe(LABELS_MAX)
    expect(readMessageFilter({ labels: `${many(LABELS_MAX)},l0` }).labels.length).toBe(LABELS_MAX)
  })

  test.each([',', 'a,', 'a,,b', ' ', 'x'.repeat(65), many(LABELS_MAX + 1)])(
    'the labels %j are refused',
    (labels) => expect(faultOf({ labels })).toBe(message.replace('50', `${LABELS_MAX}`)),
  )
})
