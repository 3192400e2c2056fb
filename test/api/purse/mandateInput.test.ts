/** Tests how the terms of a mandate are read from the owner's fields, changed, and shown. */
import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../../../api/http/errors.ts'
import {
  changedTerms,
  MandateBody,
  newTerms,
  toMandateView,
} from '../../../api/purse/mandateInput.ts'
import type { Mandate } from '../../../sql/purse/mandates.ts'

const RULES = { allowPrivate: false }
const GIVEN = { name: 'Weather', hosts: ['api.example'], maxPerPayment: '0.05', maxTotal: '10' }
const FROM = new Date('2026-01-05T09:00:00Z')

const read = (changes: object = {}, rules = RULES) =>
  newTerms({ ...GIVEN, ...changes }, 'base-sepolia', rules)

/** Is a mandate whose every term differs from the default. */
const MANDATE: Mandate = {
  ...{ row: 1n, id: 'man_1', name: 'Weather', task: 'trip', network: 'base-sepolia' },
  ...{
    hosts: ['api.example'],
    resources: ['https://b.example/c'],
    payees: [`0x${'a'.repeat(40)}`],
  },
  limits: { hour: 1n, day: 2n, month: 3n, total: 4n },
  ...{ perPaymentAtomic: 5n, paymentsPerMinute: 6, askAboveAtomic: 7n, risePercent: 8 },
  ...{ validFrom: FROM, validUntil: new Date('2026-02-05T09:00:00Z'), createdAt: FROM },
  ...{ state: 'active', reservedAtomic: 60_000n, spentAtomic: 40_000n, releasedAtomic: 10_000n },
}
const change = (changes: object = {}) => changedTerms(MANDATE, changes, RULES)

function faultOf(reading: () => unknown): string {
  try {
    reading()
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  throw new Error('the terms were read')
}

describe('a new mandate', () => {
  test('has defaults for each term that is absent', () => {
    expect(read()).toEqual({
      ...{ name: 'Weather', network: 'base-sepolia', task: null, hosts: ['api.example'] },
      ...{ resources: [], payees: null, perPaymentAtomic: 50_000n },
      limits: { hour: null, day: null, month: null, total: 10_000_000n },
      ...{ paymentsPerMinute: 60, askAboveAtomic: null, risePercent: 20 },
      ...{ validFrom: null, validUntil: null },
    })
  })

  test('has each term that is given', () => {
    const payee = `0x${'aB'.repeat(20)}`
    const amounts = { maxPerHour: '1', maxPerDay: '2', maxPerMonth: '3', maxTotal: '4' }
    const times = { validFrom: '2026-01-05T10:00:00+01:00', validUntil: '2026-02-05T09:00:00Z' }
    expect(
      read({
        ...{ ...amounts, ...times, task: 'trip', payees: [payee], askAbove: '0.02' },
        ...{ paymentsPerMinute: 1, risePercent: 0, hosts: [], resources: ['https://b.example/c'] },
      }),
    ).toMatchObject({
      ...{ task: 'trip', hosts: [], resources: ['https://b.example/c'] },
      ...{ payees: [payee.toLowerCase()], askAboveAtomic: 20_000n },
      ...{ paymentsPerMinute: 1, risePercent: 0, validFrom: FROM },
      limits: { hour: 1_000_000n, day: 2_000_000n, month: 3_000_000n, total: 4_000_000n },
      validUntil: MANDATE.validUntil,
    })
  })

  test('names a place', () => {
    const fault = 'hosts or resources must name a place: without one the mandate allows nothing'
    expect(faultOf(() => read({ hosts: [] }))).toBe(fault)
    expect(faultOf(() => read({ hosts: undefined, resources: [] }))).toBe(fault)
    expect(read({ hosts: undefined, resources: ['https://b.example/'] }).hosts).toEqual([])
  })

  test('has a limit on a sum', () => {
    const fault = 'maxPerHour, maxPerDay, maxPerMonth or maxTotal must be there'
    expect(faultOf(() => read({ maxTotal: undefined }))).toBe(fault)
    expect(faultOf(() => read({ maxTotal: null, maxPerDay: null }))).toBe(fault)
    for (const name of ['maxPerHour', 'maxPerDay', 'maxPerMonth']) {
      expect(Object.values(read({ maxTotal: null, [name]: '1' }).limits)).toContain(1_000_000n)
    }
  })

  test('has amounts above 0, and names the field of another amount', () => {
    for (const field of [
      'maxPerPayment',
      'maxPerHour',
      'maxPerDay',
      'maxPerMonth',
      'maxTotal',
      'askAbove',
    ]) {
      expect(faultOf(() => read({ [field]: '0' }))).toBe(`${field}: amount must be above 0`)
      expect(faultOf(() => read({ [field]: '1000000000000' }))).toBe(
        `${field}: amount must be below 1000000000000 USDC`,
      )
    }
  })

  test('has hosts in lower case, also with a wildcard or a port', () => {
    const hosts = ['API.Example.com:443', '*.Example.com', 'a.example:8443']
    expect(read({ hosts }).hosts).toEqual(['api.example.com', '*.example.com', 'a.example:8443'])
    for (const host of ['', '*', '*.com', 'https://a.example', 'a.example/x', 'a b']) {
      expect([host, faultOf(() => read({ hosts: ['a.example', host] }))]).toEqual([
        host,
        'hosts[1] must be a host such as api.example.com, *.example.com or api.example.com:8443, without scheme and path',
      ])
    }
  })

  test('has resources in normal form, without query and fragment', () => {
    const resources = (...given: string[]) => read({ resources: given }).resources
    expect(resources('HTTPS://A.Example:443/x/../y', 'http://b.example')).toEqual([
      ...['https://a.example/y', 'http://b.example/'],
    ])
    for (const url of [
      'https://a.example/?q=1',
      'https://a.example/#top',
      'https://a.example/?q#f',
    ]) {
      expect(faultOf(() => resources(url))).toBe('resources must have no query and no fragment')
    }
    for (const [url, reason] of [
      ['a.example', 'not a valid URL'],
      ['ftp://a.example/', 'not an http or https URL'],
      ['https://ada@a.example/', 'URL holds a user name or password'],
      ['http://127.0.0.1/', 'address is not public'],
    ] as const) {
      const fault = `resources must hold URLs that the service may call: ${reason}`
      expect(faultOf(() => resources(url))).toBe(fault)
    }
    const local = ['http://127.0.0.1:8080/x']
    expect(read({ resources: local }, { allowPrivate: true }).resources).toEqual(local)
  })

  test('has payees of 0x and 40 hexadecimal digits', () => {
    const good = `0x${'1'.repeat(40)}`
    expect(read({ payees: null }).payees).toBeNull()
    for (const payee of [
      '',
      good.slice(1),
      `${good}1`,
      good.slice(0, -1),
      `0X${'1'.repeat(40)}`,
      'ada.eth',
    ]) {
      expect(faultOf(() => read({ payees: [good, payee] }))).toBe(
        'payees[1] must be an address: 0x and 40 hexadecimal digits',
      )
    }
  })

  test('keeps the bounds on its lists, its numbers and its texts', () => {
    const fits = (changes: object) => Value.Check(MandateBody, { ...GIVEN, ...changes })
    const payee = `0x${'1'.repeat(40)}`
    for (const [field, good, bad] of [
      ['hosts', Array(50).fill('a'), Array(51).fill('a')],
      ['resources', Array(50).fill('a'), Array(51).fill('a')],
      ['payees', Array(50).fill(payee), Array(51).fill(payee)],
      ['payees', null, []],
      ['paymentsPerMinute', 1, 0],
      ['paymentsPerMinute', 10_000, 10_001],
      ['risePercent', 0, -1],
      ['risePercent', 10_000, 10_001],
      ['risePercent', 20, 20.5],
      ['name', 'x'.repeat(100), 'x'.repeat(101)],
      ['name', 'ä', ''],
      ['task', 'x'.repeat(100), 'x'.repeat(101)],
      ['task', null, ''],
      ['maxPerPayment', '0.000001', '0.0000001'],
      ['maxPerDay', null, '-1'],
    ] as const) {
      expect([field, good, fits({ [field]: good })]).toEqual([field, good, true])
      expect([field, bad, fits({ [field]: bad })]).toEqual([field, bad, false])
    }
  })
})

describe('a change of a mandate', () => {
  test('keeps each term that is left out', () => {
    const { row: _, id, createdAt, reservedAtomic, spentAtomic, releasedAtomic, ...terms } = MANDATE
    expect(change()).toEqual({ ...terms, validFrom: null })
  })

  test('removes a bound by null', () => {
    const none = { maxPerHour: null, maxPerDay: null, maxPerMonth: null, askAbove: null }
    expect(change({ ...none, task: null, payees: null, validUntil: null })).toMatchObject({
      limits: { hour: null, day: null, month: null, total: 4n },
      ...{ askAboveAtomic: null, task: null, payees: null, validUntil: null },
    })
    expect(faultOf(() => change({ ...none, maxTotal: null }))).toStartWith('maxPerHour, maxPerDay')
    expect(faultOf(() => change({ hosts: [], resources: [] }))).toStartWith('hosts or resources')
  })

  test('replaces each term that is given', () => {
    const given = { name: 'Maps', hosts: ['c.example'], resources: [], maxPerPayment: '1' }
    const more = { paymentsPerMinute: 9, risePercent: 0, validFrom: '2027-01-01T00:00:00Z' }
    expect(change({ ...given, ...more })).toMatchObject({
      ...{ name: 'Maps', hosts: ['c.example'], resources: [], perPaymentAtomic: 1_000_000n },
      ...{ paymentsPerMinute: 9, risePercent: 0, validFrom: new Date('2027-01-01T00:00:00Z') },
    })
  })

  test('stops and resumes the mandate only if it names the state', () => {
    const stopped: Mandate = { ...MANDATE, state: 'frozen' }
    const stateOf = (present: Mandate, given: object) => changedTerms(present, given, RULES).state
    expect(stateOf(MANDATE, { state: 'stopped' })).toBe('frozen')
    expect(stateOf(stopped, { state: 'active' })).toBe('active')
    expect([stateOf(MANDATE, {}), stateOf(stopped, {})]).toEqual(['active', 'frozen'])
  })
})

describe('the view of a mandate', () => {
  test('shows amounts in USDC, times in UTC, and the sum that is still open', () => {
    expect(toMandateView(MANDATE)).toEqual({
      ...{ mandateId: 'man_1', state: 'active', name: 'Weather', task: 'trip' },
      ...{ network: 'base-sepolia', hosts: ['api.example'], resources: ['https://b.example/c'] },
      ...{ payees: [`0x${'a'.repeat(40)}`], maxPerPayment: '0.000005', maxPerHour: '0.000001' },
      ...{ maxPerDay: '0.000002', maxPerMonth: '0.000003', maxTotal: '0.000004' },
      ...{ paymentsPerMinute: 6, askAbove: '0.000007', risePercent: 8 },
      ...{ validFrom: '2026-01-05T09:00:00.000Z', validUntil: '2026-02-05T09:00:00.000Z' },
      ...{ reservedUsdc: '0.06', openUsdc: '0.01', spentUsdc: '0.04', releasedUsdc: '0.01' },
      createdAt: '2026-01-05T09:00:00.000Z',
    })
  })

  test('calls a frozen mandate stopped, and shows absent bounds as null', () => {
    const limits = { hour: null, day: null, month: null, total: 4n }
    const bare = { payees: null, askAboveAtomic: null, validUntil: null, task: null, limits }
    expect(toMandateView({ ...MANDATE, ...bare, state: 'frozen' })).toMatchObject({
      ...{ state: 'stopped', payees: null, askAbove: null, validUntil: null, task: null },
      ...{ maxPerHour: null, maxPerDay: null, maxPerMonth: null, maxTotal: '0.000004' },
    })
    expect(toMandateView({ ...MANDATE, state: 'ended' }).state).toBe('ended')
  })
})
