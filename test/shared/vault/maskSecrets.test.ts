import { describe, expect, test } from 'bun:test'
import { Masker, TooManyLayersError } from '../../../shared/vault/maskSecrets.ts'

const SECRET = 'correct "horse" ü/+'
const masker = new Masker([SECRET, '492039'])
const base64 = (text: string) => Buffer.from(text).toString('base64')

function maskedOrRefused(text: string): string {
  try {
    return masker.text(text)
  } catch (error) {
    expect(error).toBeInstanceOf(TooManyLayersError)
    return ''
  }
}

describe('a secret is masked in', () => {
  test.each<[string, string, string]>([
    ['plain text', `a ${SECRET} b`, 'a [masked] b'],
    ['text with two copies', `${SECRET},${SECRET}`, '[masked],[masked]'],
    ['upper case', SECRET.toUpperCase(), '[masked]'],
    ['percent encoding', `q=${encodeURIComponent(SECRET)}&r=1`, 'q=[masked]&r=1'],
    ['a form body', new URLSearchParams({ q: SECRET }).toString(), 'q=[masked]'],
    ['JSON', JSON.stringify({ a: SECRET, b: 1 }), '{"a":"[masked]","b":1}'],
    ['JSON in JSON', JSON.stringify(JSON.stringify([SECRET])), '"[\\"[masked]\\"]"'],
    [
      'HTML',
      '<b>correct &quot;horse&quot; &uuml;&#x2f;&plus;</b> 49&#50;039',
      '<b>[masked]</b> [masked]',
    ],
    ['Basic authentication', `Basic ${base64(`ada:${SECRET}`)}`, 'Basic YWRh[masked]'],
    ['hexadecimal', Buffer.from(`x${SECRET}`).toString('hex'), '78[masked]'],
    ['decimal bytes', JSON.stringify(Buffer.from(SECRET)), '{"type":"Buffer","data":[[masked]]}'],
    [
      'base64 of JSON of percent',
      base64(JSON.stringify(encodeURIComponent(SECRET))).slice(0, -2),
      '[masked]',
    ],
    ['a number of JSON', '{"otp":492039}', '{"otp":[masked]}'],
  ])('%s', (_name, text, wanted) => {
    expect(masker.text(text)).toBe(wanted)
  })
})

test.each([
  'An answer of 492,038 words, 100 % ordinary &amp; complete: "horse" \\n correct.',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U',
  JSON.stringify({ id: 'f81d4fae-7dec-11d0-a765-00a0c91e6bf6', n: [1, 2, 3], t: 'größer' }),
  '',
])('a text without a secret is unchanged by the masking: %s', (text) => {
  expect(masker.text(text)).toBe(text)
})

test('a long text with layers of escapes never contains the secret after masking', () => {
  for (const piece of [
    '%2525252541',
    '\\\\\\\\u005c',
    '&amp;amp;amp;#37;',
    '31,32,%33,',
    'QUJD'.repeat(9),
  ]) {
    const text = piece.repeat(Math.ceil(300_000 / piece.length)) + SECRET
    expect(maskedOrRefused(text)).not.toContain('horse')
  }
})

test('a secret in an unknown form is not masked, which is a known limitation', () => {
  const reversed = [...SECRET].reverse().join('')
  expect(masker.text(reversed)).toBe(reversed)
})
