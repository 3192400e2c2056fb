/** Tests how the service detects the type of a document from the bytes, the media type and the name of a file. */
import { describe, expect, test } from 'bun:test'
import { kindOf, mayHoldText } from '../../../../shared/mail/documents/documentKind.ts'

const kind = (content: string | number[], filename = '', contentType = '') =>
  kindOf(typeof content === 'string' ? Buffer.from(content, 'latin1') : Buffer.from(content), {
    filename,
    contentType,
  })

describe('the name and the media type of a file decide whether the service tries to read text from it', () => {
  const may = (filename: string, contentType = '') => mayHoldText({ filename, contentType })

  test.each([
    ['a.txt', 'text/plain'],
    ['', ''],
    ['png', 'application/octet-stream'],
    ['a.png.txt', 'application/pdf'],
    ['a.pdf', 'x-image/png'],
  ])(
    'the service tries to read text from a file with the name %p and the type %p',
    (filename, type) => {
      expect(may(filename, type)).toBe(true)
    },
  )

  test.each([
    'image/png',
    'IMAGE/SVG+xml',
    'audio/mpeg',
    'video/mp4',
    'font/woff',
    'application/pgp-signature',
    'application/pkcs7-signature',
    'application/x-pkcs7-mime',
    'multipart/mixed',
  ])('the service reads no text from a file with the type %s', (type) => {
    expect(may('a.txt', type)).toBe(false)
  })

  test.each(['a.png', 'A.JPEG', 'a.mp3', 'a.tif', 'a.woff2', 'a.exe', 'smime.p7s'])(
    'the service reads no text from a file with the name %s',
    (filename) => {
      expect(may(filename, 'application/octet-stream')).toBe(false)
    },
  )
})

describe('the service recognises the type of a file by its first bytes', () => {
  test('a file counts as a PDF if its first 1,024 bytes contain the PDF header', () => {
    expect(kind('%PDF-1.7')).toBe('pdf')
    expect(kind(`${' '.repeat(1_019)}%PDF-`, 'a.PDF')).toBe('pdf')
    expect(kind(`${' '.repeat(1_019)}%PDF-`, '', 'application/pdf')).toBe('pdf')
    expect(kind(`\x00\x01\x02\x03%PDF-`)).toBe('pdf')
    expect(kind(`${' '.repeat(1_020)}%PDF-`)).toBe('text')
    expect(kind('PK\x03\x04%PDF-')).toBe('zip')
    expect(kind('{\\rtf1 %PDF-')).toBe('rtf')
    expect(kind('The header of such a file is %PDF-1.7.')).toBe('text')
    expect(kind('Subject: %PDF-1.7\n\nPay 100.', 'a.eml')).toBe('mail')
  })

  test('a file counts as a zip archive if its first bytes are those of a filled or an empty archive', () => {
    expect(kind('PK\x03\x04')).toBe('zip')
    expect(kind('PK\x05\x06')).toBe('zip')
    expect(kind('PK\x01\x02')).toBeNull()
    expect(kind(' PK\x03\x04')).toBeNull()
  })

  test('a file counts as Rich Text Format if it begins with the RTF signature', () => {
    expect(kind('{\\rtf1 a}', 'a.csv', 'text/html')).toBe('rtf')
    expect(kind(' {\\rtf1 a}')).toBe('text')
  })

  test('if a file’s first bytes are those of an OLE container, the file name decides its type', () => {
    for (const ending of ['docx', 'xlsx', 'pptx', 'odt', 'ods', 'odp'] as const)
      expect(kind('\xd0\xcf\x11\xe0', `a.${ending.toUpperCase()}`)).toBe(ending)
    for (const filename of ['a.doc', 'a', '', 'a.docx.bin'])
      expect([filename, kind('\xd0\xcf\x11\xe0', filename, 'text/html')]).toEqual([filename, null])
  })

  test('a file counts as a calendar if it begins with BEGIN:VCALENDAR, even after a byte order mark and 99 blanks', () => {
    expect(kind('BEGIN:VCALENDAR', 'a.csv', 'text/html')).toBe('calendar')
    expect(kind(`\xef\xbb\xbf${' '.repeat(99)}begin:vcalendar`)).toBe('calendar')
    expect(kind(`${' '.repeat(100)}BEGIN:VCALENDAR`)).toBe('text')
    expect(kind('xBEGIN:VCALENDAR')).toBe('text')
  })
})

describe('the media type, the name and the bytes of a file decide whether it is HTML, CSV or plain text', () => {
  test.each([
    ['message/rfc822', 'mail'],
    ['Message/Global', 'mail'],
    ['text/csv', 'csv'],
    ['text/tab-separated-values', 'csv'],
    ['text/html', 'html'],
    ['application/xhtml+xml', 'html'],
    ['text/plain', 'text'],
    ['', 'text'],
  ] as const)('a text file with the type %p counts as %p', (type, expected) => {
    expect(kind('a', '', type)).toBe(expected)
  })

  test.each([
    ['a.htm', 'html'],
    ['a.HTML', 'html'],
    ['a.xhtml', 'html'],
    ['a.csv', 'csv'],
    ['a.tsv', 'csv'],
    ['a.eml', 'mail'],
    ['a.csv.txt', 'text'],
    ['a.', 'text'],
    ['a.constructor', 'text'],
    ['a.__proto__', 'text'],
  ] as const)(
    'a text file with an unknown type and the name %p counts as %p',
    (filename, expected) => {
      expect(kind('a', filename, 'application/octet-stream')).toBe(expected)
      expect(kind('a', filename, 'text/html')).toBe('html')
    },
  )
})

describe('the bytes of a file decide whether the service treats it as a file without text', () => {
  test('an empty file has no text', () => {
    expect(kind('')).toBeNull()
  })

  test('a file does not count as text if more than one in a hundred of its characters is a control character', () => {
    expect(kind(`\x01${'a'.repeat(99)}`)).toBe('text')
    expect(kind(`\x01${'a'.repeat(98)}`)).toBeNull()
    for (const control of [1, 8, 14, 26, 28, 31])
      expect([control, kind([97, control, 97])]).toEqual([control, null])
    for (const letter of [9, 10, 13, 27, 32, 127, 255])
      expect([letter, kind([97, letter, 97])]).toEqual([letter, 'text'])
  })

  test('a file with null bytes does not count as text, unless more than a quarter of its bytes are null as in UTF-16', () => {
    expect(kind('aaa\0')).toBeNull()
    expect(kind('aa\0')).toBe('text')
    expect(kind('a\0b\0')).toBe('text')
    expect(kind('\0a\0\x01')).toBeNull()
  })

  test('a file with a UTF-16 byte order mark counts as text', () => {
    expect(kind([0xff, 0xfe, 1, 1])).toBe('text')
    expect(kind([0xfe, 0xff, 1, 1])).toBe('text')
    for (const [first, second] of [
      [0xff, 1],
      [1, 0xfe],
      [0xfe, 1],
      [1, 0xff],
      [0xff, 0xff],
    ])
      expect([first, second, kind([first!, second!, 1, 1])]).toEqual([first, second, null] as never)
  })

  test('only the first 4,096 bytes decide whether a file counts as text', () => {
    expect(kind(`${'a'.repeat(4_096)}${'\x01'.repeat(99)}`)).toBe('text')
    expect(kind(`${'a'.repeat(4_000)}${'\x01'.repeat(96)}`)).toBeNull()
  })

  test('if the file is a part of a larger buffer, the other bytes of the buffer are ignored', () => {
    const buffer = new Uint8Array([1, 1, 97, 98, 1, 1])
    expect(kindOf(buffer.subarray(2, 4), { filename: '', contentType: '' })).toBe('text')
  })
})
