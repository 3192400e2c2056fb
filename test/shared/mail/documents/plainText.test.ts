import { expect, test } from 'bun:test'
import { decodeText } from '../../../../shared/mail/documents/plainText.ts'

const TEXT = 'Grüße: 42\n'
const utf16le = (text: string) => Buffer.from(text, 'utf16le')
const utf16be = (text: string) => utf16le(text).swap16()

test('a plain text is decoded by its byte order mark', () => {
  expect(decodeText(utf16le(`\ufeff${TEXT}`))).toBe(TEXT)
  expect(decodeText(utf16be(`\ufeff${TEXT}`))).toBe(TEXT)
  expect(decodeText(Buffer.from(`\ufeff${TEXT}`))).toBe(TEXT)
  // Chinese text in UTF-16 has no null bytes, so that only the byte order mark shows the charset.
  expect(decodeText(utf16le('\ufeff验证码通知'))).toBe('验证码通知')
  expect(decodeText(utf16be('\ufeff验证码通知'))).toBe('验证码通知')
  // A Latin-1 text may begin with the first byte of a byte order mark, so this byte alone is no byte order mark.
  expect(decodeText(Buffer.from('\xfeing', 'latin1'))).toBe('þing')
})

test('a UTF-16 text without a byte order mark is recognised by its null bytes', () => {
  expect(decodeText(utf16le(TEXT))).toBe(TEXT)
  expect(decodeText(utf16be(TEXT))).toBe(TEXT)
  expect(decodeText(Buffer.from('1234567\0'))).toBe('1234567\0')
  expect(decodeText(Buffer.from('\x001234567'))).toBe('\x001234567')
})

test('a text in another charset is decoded by the most likely charset', () => {
  const russian = 'Здравствуйте, ваш заказ принят и будет доставлен завтра утром.'
  const koi8 = Buffer.from(
    'fac4d2c1d7d3d4d7d5cad4c52c20d7c1db20dac1cbc1da20d0d2c9ced1d420c920c2d5c4c5d420c4cfd3d4c1d7ccc5ce20dac1d7d4d2c120d5d4d2cfcd2e',
    'hex',
  )
  expect(decodeText(koi8)).toBe(russian)
  expect(decodeText(Buffer.from('caf\xe9 co\xfbte 5 \x80', 'latin1'))).toBe('café coûte 5 €')
})

test('a text that ends inside of a UTF-8 character is read as UTF-8', () => {
  expect(decodeText(Buffer.from('Grüße: 5 €').subarray(0, -1))).toBe('Grüße: 5 \ufffd')
})
