import { describe, expect, test } from 'bun:test'
import { canonicalJson } from '../../shared/canonicalJson.ts'

describe('canonicalJson writes JSON in canonical form', () => {
  test('canonicalJson writes the literals, numbers and strings of RFC 8785 §3.2.2 as the RFC does', () => {
    const input =
      '{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],' +
      '"string":"\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/","literals":[null,true,false]}'
    expect(canonicalJson(JSON.parse(input))).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
  })

  test('canonicalJson sorts object members by UTF-16 code units (RFC 8785 §3.2.3)', () => {
    const text = canonicalJson({
      '\u20ac': 'Euro Sign',
      '\r': 'Carriage Return',
      '\ufb33': 'Hebrew Letter Dalet With Dagesh',
      '1': 'One',
      '\ud83d\ude00': 'Emoji: Grinning Face',
      '\u0080': 'Control',
      '\u00f6': 'Latin Small Letter O With Diaeresis',
    })
    const order = ['Carriage', 'One', 'Control', 'Latin', 'Euro', 'Emoji', 'Hebrew']
    const places = order.map((word) => text.indexOf(word))
    expect(places).not.toContain(-1)
    expect(places).toEqual(places.toSorted((left, right) => left - right))
  })

  test.each([
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ])(
    'for the number with the bits %s, canonicalJson writes the same text as appendix B of RFC 8785',
    (ieee754, text) => {
      expect(canonicalJson(Buffer.from(ieee754, 'hex').readDoubleBE())).toBe(text)
    },
  )

  test('canonicalJson writes a control character with its short escape if JSON defines one', () => {
    expect(canonicalJson('\b\t\n\f\r\u0001\u001f\u007f')).toBe(
      '"\\b\\t\\n\\f\\r\\u0001\\u001f\u007f"',
    )
  })

  test('canonicalJson ignores the order in which object members are given, and omits undefined members', () => {
    expect(canonicalJson({ b: [{ d: 1, c: 2 }], a: null, x: undefined })).toBe(
      '{"a":null,"b":[{"c":2,"d":1}]}',
    )
  })

  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a bigint', { amount: 1n }],
    ['NaN', [Number.NaN]],
    ['infinity', { a: Number.POSITIVE_INFINITY }],
    ['a lone surrogate', '\ud800'],
    ['a lone surrogate in the name of a member', { '\udc00': 1 }],
    ['a cycle', cycle],
  ])('canonicalJson throws a TypeError for %s', (_name, value) => {
    expect(() => canonicalJson(value)).toThrow(TypeError)
  })
})
