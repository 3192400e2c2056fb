/** Tests how the service reads the terms of a mandate (a spending limit), and which errors name a wrong field. */
import { describe, expect, test } from 'bun:test'
import { ApiError } from '../../../api/http/errors.ts'
import { changedTerms, newTerms, toMandateView } from '../../../api/purse/mandateInput.ts'
import type { Mandate } from '../../../sql/purse/mandates.ts'

type Given = Parameters<typeof newTerms>[0]

const GIVEN: Given = {
  name: 'Tide tables',
  hosts: ['api.example.com'],
  maxPerPayment: '0.05',
  maxPerDay: '2',
}
const RULES = { allowPrivate: false }
const read = (given: Partial<Given> = {}) => newTerms({ ...GIVEN, ...given }, 'base', RULES)
const PRESENT: Mandate = {
  ...read({ task: 'tides', askAbove: '0.02', payees: [`0x${'a'.repeat(40)}`] }),
  id: 'man_0a1b2c3d4e5f60718293a4b5',
  row: 1n,
  state: 'frozen',
  validFrom: new Date('2026-01-05T09:00:00Z'),
  validUntil: new Date('2026-02-05T09:00:00Z'),
  reservedAtomic: 60_000n,
  spentAtomic: 40_000n,
  releasedAtomic: 5_000n,
  createdAt: new Date('2026-01-05T09:00:00Z'),
} as Mandate
const change = (given: Parameters<typeof changedTerms>[1]) => changedTerms(PRESENT, given, RULES)
const faultOf = (given: Partial<Given>) => {
  try {
    read(given)
  } catch (error) {
    return error instanceof ApiError && error.status === 400 ? error.message : error
  }
  return 'read'
}

describe('the service accepts a new mandate (spending limit) only with valid terms', () => {
  test('a new mandate (spending limit of an agent) has the given terms, and default values for the other terms', () => {
    expect(read()).toEqual({
      name: 'Tide tables',
      network: 'base',
      task: null,
      hosts: ['api.example.com'],
      resources: [],
      payees: null,
      perPaymentAtomic: 50_000n,
      limits: { hour: null, day: 2_000_000n, month: null, total: null },
      paymentsPerMinute: 60,
      askAboveAtomic: null,
      risePercent: 20,
      validFrom: null,
      validUntil: null,
    })
  })

  test('a new mandate (spending limit) has a separate limit for each period', () => {
    const { limits } = read({ maxPerHour: '1', maxPerMonth: '3', maxTotal: '4' })
    expect(limits).toEqual({
      hour: 1_000_000n,
      day: 2_000_000n,
      month: 3_000_000n,
      total: 4_000_000n,
    })
  })

  test('a new mandate (spending limit) needs a limit for at least one period', () => {
    const none = { maxPerDay: null }
    expect(faultOf(none)).toBe('maxPerHour, maxPerDay, maxPerMonth or maxTotal must be there')
    for (const field of ['maxPerHour', 'maxPerMonth', 'maxTotal'] as const) {
      expect(faultOf({ ...none, [field]: '1' })).toBe('read')
    }
  })

  test('a new mandate (spending limit) must name a host or a resource where the agent may pay', () => {
    expect(faultOf({ hosts: [] })).toBe(
      'hosts or resources must name a place: without one the mandate allows nothing',
    )
    expect(faultOf({ hosts: [], resources: ['https://api.example.com/x'] })).toBe('read')
  })

  test('the error for a wrong amount in a mandate (spending limit) names its field', () => {
    for (const field of ['maxPerPayment', 'maxPerHour', 'maxTotal', 'askAbove'] as const) {
      expect(faultOf({ [field]: '1.0000001' })).toStartWith(`${field}: `)
    }
  })
})

describe('the service accepts only valid times in a mandate (spending limit)', () => {
  test('the times of a mandate (spending limit) are ISO 8601 with a time zone, or a date', () => {
    const until = (validUntil: string) => read({ validUntil }).validUntil?.toISOString()
    expect(until('2027-01-31T09:30:00+01:00')).toBe('2027-01-31T08:30:00.000Z')
    expect(until('2027-01-31')).toBe('2027-01-31T00:00:00.000Z')
    expect(read({ validFrom: '2027-01-31' }).validFrom).toEqual(new Date('2027-01-31'))
  })

  test.each([
    '2027-02-30T00:00:00Z',
    '2027-01-01T24:00:00Z',
    '2026-12-31T23:59:60Z',
    '2027-01-01T10:00:00',
    'Friday',
    '',
  ])('the times of a mandate must be valid, so the text "%s" is refused', (text) => {
    for (const field of ['validFrom', 'validUntil'] as const) {
      expect(faultOf({ [field]: text })).toBe(
        `${field} must be an ISO 8601 time with its zone, or a date`,
      )
    }
  })
})

describe('the service accepts only valid hosts, resources and payees in a mandate (spending limit)', () => {
  test('a mandate (spending limit) lists hosts, and if a host is wrong, the error names its position in the list', () => {
    expect(read({ hosts: ['API.Example.com', '*.example.com'] }).hosts).toEqual([
      'api.example.com',
      '*.example.com',
    ])
    expect(faultOf({ hosts: ['a.example.com', 'https://b.example.com/'] })).toStartWith(
      'hosts[1] must ',
    )
  })

  test('a mandate (spending limit) names resources as public web URLs without query and fragment', () => {
    expect(read({ resources: ['https://API.example.com/x'] }).resources).toEqual([
      'https://api.example.com/x',
    ])
    for (const end of ['?a=1', '#a']) {
      expect(faultOf({ resources: [`https://api.example.com/x${end}`] })).toBe(
        'resources must have no query and no fragment',
      )
    }
    const inside = ['http://10.0.0.1/x']
    expect(faultOf({ resources: inside })).toStartWith(
      'resources must hold URLs that the service may call: ',
    )
    expect(
      newTerms({ ...GIVEN, resources: inside }, 'base', { allowPrivate: true }).resources,
    ).toEqual(inside)
  })

  test('a mandate (spending limit) stores its payee addresses in lower case, and a mandate without addresses allows every payee', () => {
    expect(read({ payees: [`0x${'A'.repeat(40)}`] }).payees).toEqual([`0x${'a'.repeat(40)}`])
    expect(read({ payees: null }).payees).toBeNull()
    for (const payee of [`0x${'a'.repeat(39)}`, 'a'.repeat(40), `0x${'g'.repeat(40)}`]) {
      expect(faultOf({ payees: [`0x${'a'.repeat(40)}`, payee] })).toBe(
        'payees[1] must be an address: 0x and 40 hexadecimal digits',
      )
    }
  })
})

describe('an owner can change one term of a mandate (spending limit) without the other terms', () => {
  test('a change of a mandate (spending limit) keeps the start time and each term that the request does not contain', () => {
    const { id, row, reservedAtomic, spentAtomic, releasedAtomic, createdAt, ...terms } = PRESENT
    expect(change({})).toEqual({ ...terms, validFrom: null })
  })

  test('a change of a mandate (spending limit) removes the limit of a period if it sets this limit to null', () => {
    const removed = change({ task: null, payees: null, askAbove: null, validUntil: null })
    expect(removed).toMatchObject({
      task: null,
      payees: null,
      askAboveAtomic: null,
      validUntil: null,
    })
  })

  test('if a change of a mandate (spending limit) sets the start time to null, the mandate is valid from now on', () => {
    const { validFrom } = change({ validFrom: null, validUntil: null })
    expect(Math.abs(validFrom!.getTime() - Date.now())).toBeLessThan(60_000)
  })

  test('a change of the times of a mandate (spending limit) is refused unless the end time is later than the start time', () => {
    const faultOfChange = (given: Parameters<typeof change>[0]) => {
      try {
        return change(given) && 'read'
      } catch (error) {
        return (error as Error).message
      }
    }
    const message = 'validUntil must be after validFrom'
    expect(faultOfChange({ validUntil: '2026-01-05T09:00:00Z' })).toBe(message)
    expect(faultOfChange({ validUntil: '2026-01-05T09:00:01Z' })).toBe('read')
    expect(faultOfChange({ validFrom: '2027-01-05' })).toBe(message)
    expect(faultOf({ validFrom: '2027-01-02', validUntil: '2027-01-01' })).toBe(message)
    const reversed = { ...PRESENT, validUntil: new Date('2025-01-01') }
    expect(changedTerms(reversed, { state: 'stopped' }, RULES).state).toBe('frozen')
  })

  test('an owner can stop a mandate (spending limit), and can make a stopped mandate active again', () => {
    expect(change({ state: 'active' }).state).toBe('active')
    expect(change({ state: 'stopped' }).state).toBe('frozen')
    expect(change({}).state).toBe('frozen')
  })

  test('a mandate (spending limit) may set risePercent to 0, so that a seller’s price may not rise', () => {
    expect(change({ risePercent: 0 }).risePercent).toBe(0)
  })
})

test('the owner sees the amounts of a mandate (spending limit) in USDC, and also how much its open payments use', () => {
  expect(toMandateView(PRESENT)).toMatchObject({
    state: 'stopped',
    maxPerPayment: '0.05',
    maxPerHour: null,
    maxPerDay: '2',
    askAbove: '0.02',
    payees: [`0x${'a'.repeat(40)}`],
    validUntil: '2026-02-05T09:00:00.000Z',
    reservedUsdc: '0.06',
    openUsdc: '0.015',
    spentUsdc: '0.04',
    releasedUsdc: '0.005',
  })
  const open = toMandateView({ ...PRESENT, state: 'ended', payees: null, validUntil: null })
  expect(open).toMatchObject({ state: 'ended', payees: null, validUntil: null })
})
