/** Tests the limits of a mandate (an owner's permission to pay) for each single payment. */
import { describe, expect, test } from 'bun:test'
import { brokenBound, covers, type MandateBounds } from '../../../shared/purse/mandate.ts'

const PAYEE = `0x${'ab'.repeat(20)}`
const RESOURCE = 'https://seller.example/weather'
const PLACE = { host: 'seller.example', url: RESOURCE, network: 'base' }
const mandate = (changes: Partial<MandateBounds> = {}): MandateBounds => ({
  network: 'base',
  hosts: [],
  resources: [],
  payees: null,
  perPaymentAtomic: 100n,
  askAboveAtomic: null,
  ...changes,
})

describe('a mandate (permission to pay) permits payments only at its own hosts, resources and chain', () => {
  test('a mandate (permission to pay) permits payments at a host or a resource that it names', () => {
    expect(covers(mandate({ hosts: ['other.example', 'seller.example'] }), PLACE)).toBe(true)
    expect(covers(mandate({ resources: [RESOURCE] }), PLACE)).toBe(true)
    expect(covers(mandate({ hosts: ['seller.example'], resources: [RESOURCE] }), PLACE)).toBe(true)
    expect(covers(mandate({ hosts: ['other.example'] }), PLACE)).toBe(false)
    expect(covers(mandate({ resources: [`${RESOURCE}/x`] }), PLACE)).toBe(false)
    expect(covers(mandate(), PLACE)).toBe(false)
  })

  test.each([
    ['https://seller.example/%77eather', RESOURCE],
    [RESOURCE, 'https://seller.example/%77eather'],
    ['https://seller.example/a/./../weather', RESOURCE],
    ['https://seller.example/a%3Ab', 'https://seller.example/a:b'],
    ['https://seller.example/a%2fb', 'https://seller.example/a%2Fb'],
  ])('a payment at %s is a payment at the resource %s of a mandate', (url, resource) => {
    expect(covers(mandate({ resources: [resource] }), { ...PLACE, url })).toBe(true)
  })

  test.each(['Weather', 'weather/', '/weather', 'weather%2F', 'we%61ther/x'])(
    'a payment at /%s is not a payment at the resource /weather',
    (path) => {
      const url = `https://seller.example/${path}`
      expect(covers(mandate({ resources: [RESOURCE] }), { ...PLACE, url })).toBe(false)
    },
  )

  test('a mandate (permission to pay) permits payments only on its own chain', () => {
    const bounds = mandate({ hosts: ['seller.example'], resources: [RESOURCE] })
    expect(covers(bounds, { ...PLACE, network: 'base-sepolia' })).toBe(false)
  })
})

describe('the service refuses a payment that exceeds a mandate (permission to pay)', () => {
  test('a payment may not exceed the amount that the mandate allows for a single payment', () => {
    const bound = (amountAtomic: bigint) => brokenBound(mandate(), { payTo: PAYEE, amountAtomic })
    expect([100n, 101n].map(bound)).toEqual([null, 'mandate_exceeded'])
  })

  test('a payment may go only to a payee that the mandate (spending limit) names, and the letter case of the address does not matter', () => {
    const payment = { payTo: PAYEE, amountAtomic: 1n }
    const bounds = mandate({ payees: [PAYEE] })
    expect(brokenBound(bounds, payment)).toBeNull()
    expect(brokenBound(bounds, { ...payment, payTo: PAYEE.toUpperCase() })).toBeNull()
    expect(brokenBound(mandate({ payees: [] }), payment)).toBe('payee_not_in_mandate')
    expect(brokenBound(bounds, { payTo: `0x${'cd'.repeat(20)}`, amountAtomic: 101n })).toBe(
      'payee_not_in_mandate',
    )
  })
})
