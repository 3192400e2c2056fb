/** Tests the form of an x402 payment payload of the scheme `exact` on EVM chains. */
import { describe, expect, test } from 'bun:test'
import { exactPayloadSchema } from '../../../shared/till/exactPayload.ts'

const UINT256_MAX = String(2n ** 256n - 1n)
const AUTHORIZATION = {
  from: `0x${'aB'.repeat(20)}`,
  to: '0x036cbd53842c5426634e7929541ec2318f3dcf7e',
  value: '10000',
  validAfter: '0',
  validBefore: '1900000000',
  nonce: `0x${'aB'.repeat(32)}`,
}
const SIGNATURE = `0x${'aB'.repeat(65)}`

const read = (changes: object = {}, signature: unknown = SIGNATURE) =>
  exactPayloadSchema.safeParse({
    signature,
    authorization: { ...AUTHORIZATION, ...changes },
  })
const isRead = (...given: Parameters<typeof read>) => read(...given).success

describe('the service refuses the payload of a payment with a missing or malformed member', () => {
  test('the payload of a payment is returned with checksummed addresses, with amounts as numbers, and with other hexadecimal values in lower case', () => {
    expect(read().data).toEqual({
      signature: SIGNATURE.toLowerCase() as `0x${string}`,
      authorization: {
        from: '0xABaBaBaBABabABabAbAbABAbABabababaBaBABaB',
        to: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        value: 10_000n,
        validAfter: 0n,
        validBefore: 1_900_000_000n,
        nonce: AUTHORIZATION.nonce.toLowerCase() as `0x${string}`,
      },
    })
  })

  test('the payload of a payment is refused if a member is missing', () => {
    for (const member of Object.keys(AUTHORIZATION))
      expect([member, isRead({ [member]: undefined })]).toEqual([member, false])
    expect(isRead({}, null)).toBe(false)
  })

  test('the payload of a payment has addresses of 40 hexadecimal digits', () => {
    for (const address of [SIGNATURE, AUTHORIZATION.to.slice(0, -1), AUTHORIZATION.to.slice(2)])
      for (const member of ['from', 'to']) expect(isRead({ [member]: address })).toBe(false)
  })

  test('the payload of a payment has a value of at most 18 digits', () => {
    for (const value of ['0', '9'.repeat(18)]) expect(isRead({ value })).toBe(true)
    for (const value of ['', '9'.repeat(19), '-1', '1.5', '0x1', 7])
      expect([value, isRead({ value })]).toEqual([value, false])
  })

  test('the payload of a payment has times that are at most the largest number of 256 bits', () => {
    for (const member of ['validAfter', 'validBefore']) {
      expect(isRead({ [member]: UINT256_MAX })).toBe(true)
      for (const time of [String(2n ** 256n), '9'.repeat(79), '', '-1', '1e3', 7])
        expect([time, isRead({ [member]: time })]).toEqual([time, false])
    }
  })

  test('the payload of a payment has a nonce of 32 bytes', () => {
    for (const length of [63, 65, 62, 66])
      expect(isRead({ nonce: `0x${'a'.repeat(length)}` })).toBe(false)
  })

  test('the payload of a payment has a signature of whole bytes, with at most 8,192 characters', () => {
    for (const digits of [2, 8_190]) expect(isRead({}, `0x${'a'.repeat(digits)}`)).toBe(true)
    for (const digits of [0, 1, 131, 8_192])
      expect(isRead({}, `0x${'a'.repeat(digits)}`)).toBe(false)
    expect(isRead({}, 'ab')).toBe(false)
  })
})
