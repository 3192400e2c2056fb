import { expect, test } from 'bun:test'
import { EVENT_ID_MAX_LENGTH, eventId, parseEventId } from '../../../shared/events/eventId.ts'

const at = new Date('2026-01-05T09:39:12.345Z')

test('the service reads from an event id the same position in the list of events for which the id was made', () => {
  for (const position of [
    { seq: 42n, at },
    { seq: 0n, at: null },
    { seq: 10n ** 18n - 1n, at },
  ]) {
    expect(parseEventId(eventId(position))).toEqual(position)
  }
  expect(eventId({ seq: 42n, at })).toBe(`42-${at.getTime()}`)
  expect(eventId({ seq: 42n, at: null })).toBe('42')
})

test('an event id with the maximum length is read', () => {
  const longest = `${'9'.repeat(18)}-${'8'.repeat(15)}`
  expect(longest).toHaveLength(EVENT_ID_MAX_LENGTH)
  expect(parseEventId(longest)).not.toBeNull()
})

test('a text that is not an event id is refused', () => {
  for (const text of [
    '',
    'x',
    '-1',
    '1-',
    '1-x',
    '1-2-3',
    ' 1',
    '1.5',
    '9'.repeat(19),
    `1-${'8'.repeat(16)}`,
  ]) {
    expect([text, parseEventId(text)]).toEqual([text, null])
  }
})
