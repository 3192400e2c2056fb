import { describe, expect, test } from 'bun:test'
import { Masker, TooManyLayersError } from '../../../shared/vault/maskSecrets.ts'
import '../../support/long.ts'

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

describe('the service masks a secret in each of the listed forms', () => {
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
  ])('a secret is masked in this form: %s', (_name, text, wanted) => {
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

test('after masking, even a long text with several layers of escapes does not contain the secret', () => {
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

test('a secret in an encoding that the masker (which hides secrets in responses) does not know stays readable, which is a known limitation', () => {
  const reversed = [...SECRET].reverse().join('')
  expect(masker.text(reversed)).toBe(reversed)
})

const mask = (secret: string, text: string) => new Masker([secret]).text(text)

describe('a secret is masked only if it is long enough', () => {
  test('a secret of three characters is masked, and a shorter one is not', () => {
    expect(mask('a1b', 'xa1bx')).toBe('x[masked]x')
    expect(mask('a1', 'xa1x')).toBe('xa1x')
    expect(mask(' a1 ', 'xa1x')).toBe('xa1x')
  })

  test('if a secret has several lines, each line of at least eight characters is masked on its own', () => {
    const key = 'line-one\nseven-7\r\nthird-line'
    expect(mask(key, 'a line-one b')).toBe('a [masked] b')
    expect(mask(key, 'a seven-7 b')).toBe('a seven-7 b')
    expect(mask(key, 'a third-line b')).toBe('a [masked] b')
    expect(mask('only-one-line', 'only-one')).toBe('only-one')
  })

  test('two secrets without a gap between them are replaced by one mask, even if only one of them is encoded', () => {
    const hex = Buffer.from('def34').toString('hex')
    expect(new Masker(['(abc12)', 'def34']).text(`<(abc12)${hex}>`)).toBe('<[masked]>')
  })

  test('a secret is masked with and without the blanks around it', () => {
    expect(mask(' secret-1 ', 'a secret-1 b')).toBe('a[masked]b')
    expect(mask(' secret-1 ', 'asecret-1b')).toBe('a[masked]b')
  })

  test('a secret in base64 with changed letter case is masked only if at least five base64 characters depend on the secret alone', () => {
    const changed = (before: string, secret: string) => base64(before + secret).toLowerCase()
    expect(mask('abcd', changed('', 'abcd'))).toBe('[masked]a==')
    expect(mask('abcd', changed('xx', 'abcd'))).toContain('[masked]')
    expect(mask('abc', changed('xxx', 'abc'))).toBe(changed('xxx', 'abc'))
  })
})

describe('a secret is masked even under several layers of encoding', () => {
  const wrapped = (layers: number) => {
    let text = SECRET
    for (let n = 0; n < layers; n++) text = base64(`x${text}x`)
    return text
  }

  test('a secret is masked under up to three layers of encoding', () => {
    for (const layers of [1, 2, 3]) expect(masker.text(wrapped(layers))).toContain('[masked]')
    expect(masker.text(wrapped(5))).toBe(wrapped(5))
  })

  test('a secret is masked even if its layers of encoding use different kinds of escapes', () => {
    const text = `%26quot;${'492039'.replace('9', '%26#57;')}%26quot;`
    expect(masker.text(text)).toBe('%26quot;[masked]%26quot;')
  })

  test('a secret in UTF-16 bytes is masked in both byte orders', () => {
    const wide = Buffer.from(`a${SECRET}b`, 'utf16le')
    for (const bytes of [wide, Buffer.from(wide).swap16()]) {
      expect(masker.bytes(bytes).toString('latin1')).toContain('[masked]')
      expect(masker.bytes(bytes).includes(Buffer.from('horse', 'utf16le'))).toBe(false)
    }
  })
})

test('the service replaces secrets that overlap or follow each other directly by one mask', () => {
  const both = new Masker(['abcdef', 'defghi', 'jklmno'])
  expect(both.text('xabcdefghix')).toBe('x[masked]x')
  expect(both.text('xabcdefjklmnox')).toBe('x[masked]x')
  expect(both.text('xabcdef-jklmnox')).toBe('x[masked]-[masked]x')
})

test('bytes without a secret are returned as the same bytes', () => {
  const bytes = Buffer.from([0, 255, 254, 65, 66])
  expect(masker.bytes(bytes)).toBe(bytes)
})

test('a secret is masked even if PHP has written its letters as named HTML 4 entities', () => {
  const secret = 'Schlüssel€–λόγος'
  const written = 'Schl&uuml;ssel&euro;&ndash;&lambda;ό&gamma;&omicron;&sigmaf;'
  expect(mask(secret, `<b>${written}</b>`)).toBe('<b>[masked]</b>')
})
