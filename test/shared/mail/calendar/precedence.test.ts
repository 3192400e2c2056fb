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

test('the message with the later SEQUENCE takes effect, even if the other message has a later DTSTAMP', () => {
  expect(compareRevisions({ sequence: 3, stampMs: 0 }, LATER)).toBeGreaterThan(0)
  expect(compareRevisions({ sequence: 1, stampMs: 9_999 }, LATER)).toBeLessThan(0)
  expect(compareRevisions(LATER, SAME)).toBeGreaterThan(0)
  expect(compareRevisions(EARLIER, SAME)).toBeLessThan(0)
  expect(compareRevisions({ ...SAME }, SAME)).toBe(0)
})

describe('the service judges a message of the proven organizer of an event', () => {
  test('announces an event that the calendar lacks', () => {
    expect(effect(null)).toBe('new')
    expect(effect(null, SAME, { isCancellation: true })).toBe('new')
  })

  test('a message of the organizer updates an older revision, repeats an equal revision, and has no effect on a newer one', () => {
    expect(effect(KNOWN, LATER)).toBe('updated')
    expect(effect(KNOWN)).toBe('same')
    expect(effect(KNOWN, EARLIER)).toBe('outdated')
  })

  test('a message of the organizer replaces an event that a stranger announced, whatever the SEQUENCE of both is', () => {
    expect(effect({ ...KNOWN, isProven: false }, { sequence: 0, stampMs: 0 })).toBe('updated')
  })

  test('if a series was cancelled, an older message about one of its instances is outdated', () => {
    expect(effect(null, EARLIER, { series: CANCELLED })).toBe('outdated')
    expect(effect({ ...KNOWN, sequence: 0 }, EARLIER, { series: CANCELLED })).toBe('outdated')
    expect(effect(null, SAME, { series: CANCELLED })).toBe('new')
    expect(effect(null, LATER, { series: CANCELLED })).toBe('new')
  })

  test('a message about an instance takes effect if the series still takes place, or if a stranger cancelled the series', () => {
    expect(effect(null, EARLIER, { series: { ...CANCELLED, isCancelled: false } })).toBe('new')
    expect(effect(null, EARLIER, { series: { ...CANCELLED, isProven: false } })).toBe('new')
  })
})

describe('the service judges a message of somebody who is not the proven organizer', () => {
  const stranger = { isProven: false }

  test('announces an event that the calendar lacks', () => {
    expect(effect(null, SAME, stranger)).toBe('new')
  })

  test('a message of a stranger changes no known event, cancels nothing, and adds no instance to a series', () => {
    expect(effect(KNOWN, LATER, stranger)).toBe('proposal')
    expect(effect({ ...KNOWN, isProven: false }, LATER, stranger)).toBe('proposal')
    expect(effect(null, SAME, { ...stranger, isCancellation: true })).toBe('proposal')
    expect(effect(null, EARLIER, { ...stranger, series: CANCELLED })).toBe('proposal')
  })
})
