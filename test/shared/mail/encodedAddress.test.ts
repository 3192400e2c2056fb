/** Tests that the service sends no mail to an address that a mail program could decode into another address. */
import { expect, test } from 'bun:test'
import { isEnvelopeAddress, parseAddress, parseMailbox } from '../../../shared/mail/address.ts'
import { parseUnsubscribeMailto } from '../../../shared/mail/compose/unsubscribe.ts'
import { parseRuleValue } from '../../../shared/mail/emailRules.ts'
import { addressTerm } from '../../../shared/mail/search/searchTerms.ts'

const word = `=?utf-8?B?${Buffer.from('boss@corp.example').toString('base64')}?=`
const ADDRESSES = [
  `${word}@evil.example`,
  `"${word}"@evil.example`,
  '=?iso-8859-1?Q?boss?=@evil.example',
  'a=?b@evil.example',
]

test('the service sends no mail to an address whose local part contains an encoded word', () => {
  for (const text of ADDRESSES) {
    expect([text, parseAddress(text)]).toEqual([text, null])
    expect([text, parseMailbox(`Ada <${text}>`)]).toEqual([text, null])
    expect([text, parseUnsubscribeMailto(text)]).toEqual([text, null])
  }
  for (const text of ['a=b?@x.test', 'a?=b@x.test', '=a?@x.test'])
    expect(parseAddress(text)).toBe(text)
})

test('the service receives mail from an address with an encoded word, and an email rule can name this address', () => {
  for (const text of [ADDRESSES[0]!, ADDRESSES[2]!, ADDRESSES[3]!]) {
    expect([text, isEnvelopeAddress(text)]).toEqual([text, true])
    expect(parseRuleValue(text)).toBe(text.toLowerCase())
    expect(addressTerm(text)).not.toBeNull()
  }
})
