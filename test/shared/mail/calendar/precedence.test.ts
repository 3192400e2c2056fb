/** Tests which of two messages about the same calendar event takes effect. */
import { describe, expect, test } from 'bun:test'
import {
  compareRevisions,
  effectOf,
  type KnownRevision,
  type KnownSeries,
} from '../../../../shared/mail/calendar/precedence.ts'

const KNOWN: KnownRevision = { sequence: 2, stampMs: 1_000, isProven: true }
const SAME = { sequence: 2, stampMs: 1_000 }
const LATER = { sequence: 2, stampMs: 1_001 }
const EARLIER = { sequence: 2, stampMs: 999 }
const CANCELLED: KnownSeries = { ...KNOWN, isCancelled: true }

const effect = (
  known: KnownRevision | null,
  given = SAME,
  about: { isProven?: boolean; isCancellation?: boolean; series?: KnownSeries | null } = {},
) => effectOf(known, given, { isProven: true, isCancellation: false, series: null, ...about })

test('the invitation with the higher SEQUENCE takes effect, even if another invitation has a later DTSTAMP', () => {
  expect(compareRevisions({ sequence: 3, stampMs: 0 }, LATER)).toBeGreaterThan(0)
  expect(compareRevisions({ sequence: 1, stampMs: 9_999 }, LATER)).toBeLessThan(0)
  expect(compareRevisions(LATER, SAME)).toBeGreaterThan(0)
  expect(compareRevisions(EARLIER, SAME)).toBeLessThan(0)
  expect(compareRevisions({ ...SAME }, SAME)).toBe(0)
})

describe('a message whose organizer is authenticated updates an event, unless the calendar has a newer version', () => {
  test('a message from the organizer announces an event that the calendar does not have', () => {
    expect(effect(null)).toBe('new')
    expect(effect(null, SAME, { isCancellation: true })).toBe('new')
  })

  test('a message of the organizer updates an older version of the event in the calendar, and does not change an equal or newer version', () => {
    expect(effect(KNOWN, LATER)).toBe('updated')
    expect(effect(KNOWN)).toBe('same')
    expect(effect(KNOWN, EARLIER)).toBe('outdated')
  })

  test('the organizer’s message replaces an event that an unauthenticated sender announced, even with a lower SEQUENCE', () => {
    expect(effect({ ...KNOWN, isProven: false }, { sequence: 0, stampMs: 0 })).toBe('updated')
  })

  test('after a recurring event was cancelled, an older message about one of its instances has no effect', () => {
    expect(effect(null, EARLIER, { series: CANCELLED })).toBe('outdated')
    expect(effect({ ...KNOWN, sequence: 0 }, EARLIER, { series: CANCELLED })).toBe('outdated')
    expect(effect(null, SAME, { series: CANCELLED })).toBe('new')
    expect(effect(null, LATER, { series: CANCELLED })).toBe('new')
  })

  test('an older message about one instance of a recurring event takes effect, unless the authenticated organizer has cancelled the whole event', () => {
    expect(effect(null, EARLIER, { series: { ...CANCELLED, isCancelled: false } })).toBe('new')
    expect(effect(null, EARLIER, { series: { ...CANCELLED, isProven: false } })).toBe('new')
  })
})

describe('a message of somebody who is not the authenticated organizer changes no known event', () => {
  const stranger = { isProven: false }

  test('a message from an unauthenticated sender announces an event that the calendar does not have', () => {
    expect(effect(null, SAME, stranger)).toBe('new')
  })

  test('a message from an unauthenticated sender changes no known event, cancels nothing, and adds no instance to a recurring event', () => {
    expect(effect(KNOWN, LATER, stranger)).toBe('proposal')
    expect(effect({ ...KNOWN, isProven: false }, LATER, stranger)).toBe('proposal')
    expect(effect(null, SAME, { ...stranger, isCancellation: true })).toBe('proposal')
    expect(effect(null, EARLIER, { ...stranger, series: CANCELLED })).toBe('proposal')
  })
})
