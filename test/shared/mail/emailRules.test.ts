/** Tests which email addresses and messages the email rules of an inbox allow. */
import { describe, expect, test } from 'bun:test'
import {
  admit,
  isAllowed,
  isRefused,
  parseRuleValue,
  type Rule,
} from '../../../shared/mail/emailRules.ts'

const rule = (text: string): Rule => {
  const [type, scope, value] = text.split(' ')
  return { type, scope, value } as Rule
}
const rules = (...texts: string[]) => texts.map(rule)
const allow = (value: string) => `ALLOW RECEIVE ${value}`
const block = (value: string) => `BLOCK RECEIVE ${value}`

describe('the value of an email rule must be one address or one domain', () => {
  test('an email rule names one address in lower case, or `*@` and a domain in ASCII', () => {
    for (const [text, value] of [
      ['Ada@Shop.Example', 'ada@shop.example'],
      ['"Ada"@shop.example', 'ada@shop.example'],
      ['any@shop.example', 'any@shop.example'],
      ['*@Bücher.example', '*@xn--bcher-kva.example'],
      ['x*@shop.example', 'x*@shop.example'],
    ])
      expect(parseRuleValue(text!)).toBe(value!)
  })

  test('an email rule is refused if it is empty, names several addresses or has an asterisk in the domain', () => {
    for (const text of [
      '',
      '*',
      '*@',
      '@shop.example',
      '**@',
      ' *@shop.example',
      '*@*.example',
      '*@a.example,*@b.example',
      'Ada <ada@shop.example>',
      'ada@shop.example\r\nBcc: b@shop.example',
      `*@${'a.'.repeat(125)}example`,
    ])
      expect([text, parseRuleValue(text)]).toEqual([text, null])
  })
})

describe('the most specific email rule decides whether an address is allowed', () => {
  test('email rules allow an address if no rule has the requested scope (such as SEND)', () => {
    expect(isAllowed([], 'SEND', 'ada@shop.example')).toBe(true)
    expect(isAllowed(rules('BLOCK REPLY ada@shop.example'), 'SEND', 'ada@shop.example')).toBe(true)
    expect(isAllowed(rules('ALLOW REPLY bob@shop.example'), 'SEND', 'ada@shop.example')).toBe(true)
  })

  test('the email rule for an address has priority over the rule for its domain, in any order of the rules', () => {
    for (const [own, domain, allowed] of [
      ['ALLOW', 'BLOCK', true],
      ['BLOCK', 'ALLOW', false],
    ] as const) {
      const both = rules(`${domain} SEND *@shop.example`, `${own} SEND ada@shop.example`)
      for (const list of [both, both.toReversed()]) {
        expect(isAllowed(list, 'SEND', 'Ada@Shop.Example')).toBe(allowed)
        expect(isAllowed(list, 'SEND', 'bob@shop.example')).toBe(!allowed)
      }
    }
  })

  test('an address without an email rule is blocked if an allow rule for another address exists; a block rule has no such effect', () => {
    const ada = 'ada@shop.example'
    expect(isAllowed(rules('BLOCK SEND *@b.example'), 'SEND', ada)).toBe(true)
    expect(isAllowed(rules('BLOCK SEND *@b.example', 'ALLOW SEND c@d.example'), 'SEND', ada)).toBe(
      false,
    )
  })

  test('an email rule for a domain does not apply to its subdomains, or to domains whose names only contain the domain’s name', () => {
    const blocked = rules('BLOCK SEND *@shop.example')
    for (const address of ['ada@eu.shop.example', 'ada@myshop.example', 'ada@shop.example.org'])
      expect(isAllowed(blocked, 'SEND', address)).toBe(true)
  })

  test('if an address contains several `@`, the email rule for the domain after the last `@` applies', () => {
    expect(
      isAllowed(rules('BLOCK SEND *@shop.example'), 'SEND', '"a@b.example"@shop.example'),
    ).toBe(false)
  })
})

describe('before its sender is authenticated, a message is refused if an email rule blocks it', () => {
  const refused = (
    list: readonly Rule[],
    envelopeFrom: string,
    from: string[],
    isProvenBounce = false,
  ) => isRefused(list, { envelopeFrom, from }, { isProvenBounce })
  const ADA = 'ada@shop.example'
  const SPAM = 'spam@bad.example'

  test('a message is refused if an email rule blocks its envelope sender or an author, even if it is a genuine bounce of a sent mail', () => {
    const list = rules(block(SPAM))
    for (const isProven of [false, true]) {
      expect(refused(list, SPAM, [ADA], isProven)).toBe(true)
      expect(refused(list, ADA, [ADA, SPAM], isProven)).toBe(true)
      expect(refused(list, ADA, [ADA], isProven)).toBe(false)
    }
  })

  test('an email rule for a domain does not refuse a message if another rule allows the address itself', () => {
    const list = rules(block('*@shop.example'), allow(ADA))
    expect(refused(list, ADA, [ADA])).toBe(false)
    expect(refused(list, 'bob@shop.example', [ADA])).toBe(true)
    expect(refused(list, ADA, ['bob@shop.example'])).toBe(true)
    const other = rules(allow('*@shop.example'), block(ADA))
    expect(refused(other, ADA, ['bob@shop.example'])).toBe(true)
  })

  test('with an allow list, a message is refused if one of its authors is not on the list, except a genuine bounce of a sent mail', () => {
    const list = rules(allow(ADA))
    expect(refused(list, SPAM, [ADA])).toBe(false)
    for (const from of [[SPAM], [ADA, SPAM]]) {
      expect(refused(list, ADA, from)).toBe(true)
      expect(refused(list, ADA, from, true)).toBe(false)
    }
  })

  test('if a message has no author, its envelope sender counts as the author', () => {
    expect(refused(rules(allow(ADA)), ADA, [])).toBe(false)
    expect(refused(rules(allow(ADA)), SPAM, [])).toBe(true)
    expect(refused(rules(block(SPAM)), SPAM, [])).toBe(true)
    expect(refused(rules(allow(ADA)), '', [])).toBe(true)
    expect(refused(rules(block(SPAM)), '', [])).toBe(false)
  })

  test('email rules with a scope other than RECEIVE do not affect a received message', () => {
    const list = rules(`BLOCK SEND ${ADA}`, 'ALLOW REPLY other@shop.example')
    expect(refused(list, ADA, [ADA])).toBe(false)
  })
})

describe('after the authentication of its sender, a message is stored only if the allow list contains its authenticated author', () => {
  const ADA = 'ada@shop.example'
  const FACTS = { isProvenBounce: false, isAligned: false, isUnsure: false }
  const admitted = (list: readonly Rule[], from: string, facts: Partial<typeof FACTS> = {}) =>
    admit(list, { envelopeFrom: ADA, from: [from] }, { ...FACTS, ...facts })

  test('without an allow list, a message from any author is stored', () => {
    expect(admitted([], ADA)).toBe('store')
    expect(admitted(rules(block('spam@bad.example')), ADA, { isProvenBounce: true })).toBe('store')
    expect(admitted(rules(`ALLOW SEND ${ADA}`, `ALLOW REPLY ${ADA}`), 'bob@b.example')).toBe(
      'store',
    )
  })

  test('with an allow list, a message from an allowed author is stored only if authentication proves the author', () => {
    const list = rules(allow(ADA))
    expect(admitted(list, ADA, { isAligned: true })).toBe('store')
    expect(admitted(list, ADA)).toBe('discard')
    expect(admitted(list, 'bob@b.example', { isAligned: true })).toBe('discard')
  })

  test('with an allow list, a genuine bounce is stored without the text of its sender, unless the list contains its authenticated author', () => {
    const list = rules(allow(ADA))
    for (const from of [ADA, 'bob@b.example'])
      expect(admitted(list, from, { isProvenBounce: true, isUnsure: true })).toBe('reduce')
    expect(admitted(list, ADA, { isProvenBounce: true, isAligned: true })).toBe('store')
  })

  test('a message waits for DNS answers only if an allow list contains its author', () => {
    const list = rules(allow(ADA))
    expect(admitted(list, ADA, { isUnsure: true })).toBe('later')
    expect(admitted(list, 'bob@b.example', { isUnsure: true })).toBe('discard')
    expect(admitted(rules(block('*@x.example')), ADA, { isUnsure: true })).toBe('store')
  })
})
