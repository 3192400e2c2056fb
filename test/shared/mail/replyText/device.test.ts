import { describe, expect, test } from 'bun:test'
import { isClosingDeviceLine, isDeviceLine } from '../../../../shared/mail/replyText/device.ts'

const closes = (...views: string[]) => isClosingDeviceLine(['Yes.', '', ...views], 2)

describe('a line that names a known device ("Sent from my iPhone") ends the reply', () => {
  test.each([
    'Sent from my iPhone',
    'Get Outlook for Android',
    'sent via mobile',
    'From my phone',
    'Jane via iPhone',
    `Sent from my iPhone ${'x'.repeat(100)}`,
    'Sent from my iPhone 3 4 5 6 7 8 9 10 11 12',
    'sent from a b c d iphone',
  ])('this line names a known device: %s', (line) => expect(isDeviceLine(line)).toBe(true))

  test.each([
    ['with a question mark', 'Sent from my iPhone?'],
    ['with a colon at its end', 'Sent from my iPhone:'],
    ['with more than 120 characters', `Sent from my iPhone ${'x'.repeat(101)}`],
    ['with more than 14 words', 'Sent from my iPhone 3 4 5 6 7 8 9 10 11 12 13'],
    ['with Outlook among more than seven words', 'The outlook for a new iphone market is bright'],
    ['with the device behind the eighth word', 'Sent from my own desk in town, not an iPhone'],
    ['with Outlook and no device', 'Get Outlook for my mother'],
  ])('a line does not count as a device line %s: %s', (_name, line) =>
    expect(isDeviceLine(line)).toBe(false),
  )

  test('a line such as "Sent from my iPhone" (a device line) has at most 200 characters, markup included', () => {
    const padded = (length: number) =>
      'Sent from my iPhone <https://'.padEnd(length - 1, 'x').concat('>')
    expect(isDeviceLine(padded(200))).toBe(true)
    expect(isDeviceLine(padded(201))).toBe(false)
  })

  test('a device line ("Sent from my iPhone") may have up to 120 characters without markup', () => {
    expect(isDeviceLine(`Sent from my iPhone ${'x'.repeat(100)}`)).toBe(true)
  })

  test('a device line ("Sent from my iPhone") may end with the verb for "sent", as in German, if it has at most nine words', () => {
    expect(isDeviceLine('a b c d e f von iPhone gesendet')).toBe(true)
    expect(isDeviceLine('a b c d e f g von iPhone gesendet')).toBe(false)
    expect(isDeviceLine('ich habe von iPhone gesendet')).toBe(false)
  })
})

describe('the lines below a device line ("Sent from my iPhone") decide whether the device line ends the reply', () => {
  test.each([
    ['at the end of the mail', []],
    ['above an empty line', ['', 'More.']],
    ['above a quoted line', ['> quoted']],
    ['above a rule', ['________________']],
    ['above the address of its maker', ['https://maker.example/app', '']],
    ['above a header line', ['From: Ann <ann@mail.example>']],
    ['above another device line', ['Get Outlook for Android']],
  ])('a device line ("Sent from my iPhone") ends the reply %s', (_name, below) => {
    expect(closes('Sent from my iPhone 12 with a very short note', ...below)).toBe(true)
  })

  test('if an ordinary line follows, a device line ("Sent from my iPhone") ends the reply only if it has at most six words', () => {
    expect(closes('Sent from my iPhone 12 mini', 'and more text')).toBe(true)
    expect(closes('Sent from my new iPhone 12 mini', 'and more text')).toBe(false)
  })

  test('a device line ("Sent from my iPhone") does not end the reply if a link with text below follows', () => {
    const line = 'Sent from my iPhone 12 with a very short note'
    expect(closes(line, 'https://maker.example/app', 'and more text')).toBe(false)
    expect(closes(line, 'see https://maker.example/app', '')).toBe(false)
  })
})

describe('a line about an unknown device ends the reply if it has a usual form ("Sent from my …")', () => {
  test.each([
    ['a program that names itself', 'Get Nine for Android'],
    ['the verb for "sent" at the end', 'Von Nine gesendet'],
    ['a symbol, "via" and a name', '⌚ via Tikker'],
    ['an impersonal verb with two nouns', 'Wysłano z czytnika Sówka Note'],
    ['the kind of thing before the name', 'Envoyé depuis ma liseuse Paginéo'],
    ['a name whose ending means "with"', 'Kumru Posta uygulamasıyla gönderildi'],
    ['"my" and the verb at the end', 'Per Diktat von meiner Visionar-Brille gesendet'],
    ['a Japanese device', 'タブレット端末から送信'],
    ['"my", a name and an excuse', 'Sent from my Foo 12. Please excuse typos.'],
    ['a program and an excuse', 'Composed with Quillwing Mail, please excuse typos'],
    ['one name', 'Sent with Nine'],
    ['"my" behind the name', 'Trimis de pe Foo-ul meu'],
    ['a Latin name in another script', 'ส่งจาก Vivo V29'],
    ['a model with a grammatical case', 'Lähetetty Foo 12:sta'],
  ])(
    'a device line that names an unknown device ends the reply if it has %s: %s',
    (_name, line) => {
      expect(closes(line)).toBe(true)
      expect(closes(line, 'and more text')).toBe(false)
    },
  )

  test.each([
    ['that ends like a sentence', 'Wysłano z czytnika Sówka Note.'],
    ['with a finite verb', 'Brief wurde von Nine mit Posta gönderildi'],
    ['that names a courier', 'Sent with DHL'],
    ['with more than eight words', 'Sent by one two three four with Nine Ten'],
    ['that asks', 'Sent from my Foo 12. Did you get it?'],
    [
      'with a long excuse',
      'Sent from my Foo 12. one two three four five six seven eight nine ten eleven',
    ],
    ['with three excuses', 'Sent from my Foo 12. a, b, c'],
    ['with "via" in the middle of a sentence', 'We flew via Tikker'],
  ])('a line %s does not end the reply: %s', (_name, line) => expect(closes(line)).toBe(false))

  test('a device line with an unknown device has at most 80 characters, unless it contains "my" ("Sent from my …")', () => {
    const name = (length: number) => `${'Von '.padEnd(length - ' gesendet'.length, 'N')} gesendet`
    expect(closes(name(80))).toBe(true)
    expect(closes(name(81))).toBe(false)
  })

  test('a device line with an unknown device has at most 120 characters, even if it contains "my" ("Sent from my …")', () => {
    const line = (length: number) => 'Sent from my '.padEnd(length, 'N')
    expect(closes(line(120))).toBe(true)
    expect(closes(line(121))).toBe(false)
  })

  test('a device line with an unknown device must start a paragraph, unless it contains "my" ("Sent from my …")', () => {
    const follows = (line: string) => isClosingDeviceLine(['Yes.', line], 1)
    expect(follows('Sent with Nine')).toBe(false)
    expect(follows('Wysłano z czytnika Sówka Note')).toBe(false)
    expect(follows('Sent from my Foo 12')).toBe(true)
  })

  test('a device line ("Sent from my …") with an unknown device does not end the reply if a sentence follows within three lines', () => {
    expect(closes('Sent with Nine', '', 'I hope it arrives.')).toBe(false)
    expect(closes('Sent with Nine', '', '', '', 'I hope it arrives.')).toBe(false)
    expect(closes('Sent with Nine', '', '', '', '', 'I hope it arrives.')).toBe(true)
    expect(closes('Sent with Nine', '', '> I hope it arrives.')).toBe(true)
  })
})
