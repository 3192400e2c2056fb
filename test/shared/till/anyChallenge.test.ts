/**
 * Tests which x402 challenges of other sellers the service recognises, and which payment addresses these challenges
 * contain.
 */
import { describe, expect, test } from 'bun:test'
import { challengePayees, challengeVersions } from '../../../shared/till/anyChallenge.ts'

const PAYEE = `0x${'aB'.repeat(20)}`
const SHARED = { scheme: 'upto', payTo: PAYEE, asset: 'token', maxTimeoutSeconds: 60 }
const V1 = {
  ...SHARED,
  network: 'solana',
  maxAmountRequired: '1',
  resource: 'https://seller.example/',
}
const V2 = { ...SHARED, network: 'solana:5eykt4Us', amount: '1' }
const v1 = (accepts: unknown = [V1]) => ({ x402Version: 1, accepts })
const v2 = (accepts: unknown = [V2], more: object = {}) => ({
  ...{ x402Version: 2, resource: { url: 'https://seller.example/' }, accepts },
  ...more,
})
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64')
const versions = (body: unknown, header?: unknown) =>
  challengeVersions(JSON.stringify(body), header === undefined ? undefined : base64(header))
const payees = (body: unknown, header?: unknown) =>
  challengePayees(JSON.stringify(body), header === undefined ? undefined : base64(header))

describe('the version of an x402 challenge is recognised by its place in the response, and by its members', () => {
  test('an x402 challenge in the body has version 1, and a challenge in the header has version 2', () => {
    expect(versions(v1())).toEqual([1])
    expect(versions({}, v2())).toEqual([2])
    expect(versions(v1(), v2())).toEqual([1, 2])
    expect(versions(v2(), v1())).toEqual([])
    expect(challengeVersions('', undefined)).toEqual([])
    expect(challengeVersions('{', 'no base64')).toEqual([])
  })

  test('the service recognises a challenge of an x402 version only if one of its payment options has every member that this version requires', () => {
    for (const member of Object.keys(V1))
      expect([member, versions(v1([{ ...V1, [member]: undefined }]))]).toEqual([member, []])
    for (const member of Object.keys(V2))
      expect([member, versions({}, v2([{ ...V2, [member]: undefined }]))]).toEqual([member, []])
    expect(versions(v1([]), v2([]))).toEqual([])
    expect(versions(v1([{ ...V1, maxTimeoutSeconds: 0 }]))).toEqual([])
    expect(versions(v1([{ ...V1, payTo: '' }]))).toEqual([])
    expect(versions({}, v2([V2], { resource: {} }))).toEqual([])
  })

  test('the service still recognises the x402 version of a challenge if one of several payment options has an unknown form', () => {
    for (const other of [{ scheme: 'next' }, { ...V1, network: 'base', asset: null }, null, 7]) {
      expect([other, versions(v1([other, V1]))]).toEqual([other, [1]])
      expect([other, versions({}, v2([V2, other]))]).toEqual([other, [2]])
      expect([other, versions(v1([other]), v2([other]))]).toEqual([other, []])
    }
  })

  test('the service recognises a challenge of x402 version 2 only if the challenge names its chain in CAIP-2 form', () => {
    for (const network of ['base', ':8453', 'eip155:', ''])
      expect([network, versions({}, v2([{ ...V2, network }]))]).toEqual([network, []])
  })
})

describe('the service returns each EVM payee address of an x402 challenge once', () => {
  test('the payees of an x402 challenge are collected from body and header in lower case, each of them once', () => {
    const other = `0x${'12'.repeat(20)}`
    expect(payees(v1(), v2([V2, { payTo: other }]))).toEqual([PAYEE.toLowerCase(), other])
    expect(payees(v1([{ payTo: other }, V1]))).toEqual([other, PAYEE.toLowerCase()])
  })

  test('the payees of an x402 challenge are EVM addresses only', () => {
    for (const payTo of ['', 'solana', PAYEE.slice(2), `${PAYEE}0`, `${PAYEE}\n`, 7, null])
      expect([payTo, payees(v1([{ payTo }]))]).toEqual([payTo, []])
    for (const body of [null, 7, {}, v1({}), v1([null, 7, 'text'])])
      expect(payees(body)).toEqual([])
    expect(challengePayees('{', 'no base64')).toEqual([])
  })

  test('at most the first 20 payees of an x402 challenge are kept', () => {
    const many = Array.from({ length: 21 }, (_, n) => `0x${String(n).padStart(40, '0')}`)
    expect(payees(v1(many.map((payTo) => ({ payTo }))))).toEqual(many.slice(0, 20))
  })
})
