/** Tests how a buyer reads the settlement header of a seller, and when the buyer repeats the paid request. */
import { describe, expect, test } from 'bun:test'
import {
  isUndecided,
  readSellerSettlement,
  type SellerSettlement,
} from '../../../shared/purse/sellerSettlement.ts'

const HASH = `0x${'aB'.repeat(32)}`
const NONE: SellerSettlement = {
  success: false,
  transaction: null,
  errorReason: null,
  receipt: null,
}
const base64 = (text: string) => Buffer.from(text).toString('base64')
const read = (value: unknown) => readSellerSettlement(base64(JSON.stringify(value)))
const withReceipt = (receipt: unknown) => ({ 'offer-receipt': { info: { receipt } } })

describe('a buyer reads the settlement header of a seller, and ignores malformed parts of the header', () => {
  test('a seller’s settlement header is a JSON object in base64', () => {
    expect(read({})).toEqual(NONE)
    for (const header of [null, '', 'no base64', base64('{')])
      expect(readSellerSettlement(header)).toBeNull()
    for (const value of [null, 7, [], 'text']) expect(read(value)).toBeNull()
  })

  test('a seller’s settlement header has at most 16,384 characters', () => {
    const header = base64('{}').padEnd(16_384, '=')
    expect(readSellerSettlement(header)).toEqual(NONE)
    expect(readSellerSettlement(`${header}=`)).toBeNull()
  })

  test('a seller’s settlement header states success, transaction, reason and receipt', () => {
    const extensions = withReceipt({ signature: 'a.b.c' })
    expect(read({ success: true, transaction: HASH, errorReason: 'late', extensions })).toEqual({
      success: true,
      transaction: HASH.toLowerCase(),
      errorReason: 'late',
      receipt: 'a.b.c',
    })
  })

  test('if a member of the seller’s settlement header has a wrong type, this member is ignored', () => {
    for (const success of ['true', 1, null]) expect(read({ success })?.success).toBe(false)
    for (const transaction of [HASH.slice(0, -1), `${HASH}0`, HASH.slice(2), '', 7, null])
      expect(read({ success: true, transaction })).toEqual({ ...NONE, success: true })
    expect(read({ errorReason: 'x'.repeat(200) })?.errorReason).toHaveLength(200)
    for (const errorReason of ['x'.repeat(201), 7, null])
      expect(read({ errorReason })).toEqual(NONE)
    for (const extensions of [
      null,
      7,
      {},
      { 'offer-receipt': 7 },
      { 'offer-receipt': { info: 7 } },
    ])
      expect(read({ extensions })).toEqual(NONE)
    for (const receipt of [null, 'a.b.c', { signature: 7 }])
      expect(read({ extensions: withReceipt(receipt) })).toEqual(NONE)
  })
})

describe('a buyer repeats a paid request only if the result of the payment is unknown or pending', () => {
  const pending = { ...NONE, errorReason: 'settlement_pending' }

  test('a buyer repeats a paid request if no response comes, or if the response does not tell whether the payment was accepted', () => {
    for (const status of [null, 408, 425, 429, 500, 503, 599])
      expect([status, isUndecided(status, null)]).toEqual([status, true])
    for (const status of [200, 400, 402, 403, 407, 409, 424, 426, 428, 430, 499])
      expect([status, isUndecided(status, null)]).toEqual([status, false])
  })

  test('after a 402 response, a buyer repeats a paid request only if the settlement is pending', () => {
    expect(isUndecided(402, pending)).toBe(true)
    expect(isUndecided(402, { ...pending, errorReason: 'insufficient_funds' })).toBe(false)
    for (const status of [200, 401, 403]) expect(isUndecided(status, pending)).toBe(false)
  })
})
