/** Tests how the service splits and hashes the bytes of a mail without a MIME parser. */
import { describe, expect, test } from 'bun:test'
import {
  contentHash,
  rawBody,
  rawHeader,
  rawHeaders,
} from '../../../../shared/mail/parse/rawMail.ts'

const MIB = 1024 * 1024
const bytes = (text: string) => new Uint8Array(Buffer.from(text))
const body = (text: string, max = 100) => rawBody(bytes(text), max).trim()
const headers = (text: string, name = 'To') => rawHeaders(bytes(text), name)
const hash = (text: string) => contentHash(bytes(text)).toString('hex')
const MAIL = 'From: a@a.example\r\nSubject: Tide\r\n\r\nHello\r\n'

describe('a caller that names a header field gets all its values', () => {
  test('header fields with the same name are returned in their order, in any letter case of the name', () => {
    expect(headers('To: a\r\nFrom: c\r\nTO: b\r\n\r\nbody')).toEqual(['a', 'b'])
    expect(headers('to: a\r\n\r\n', 'TO')).toEqual(['a'])
    expect(headers('Total: 1\r\nX-To: 2\r\n\r\n')).toEqual([])
  })

  test('the values of header fields are unfolded and trimmed', () => {
    expect(headers('To: a,\r\n b,\r\n\t  c \r\nFrom: d\r\n\r\n')).toEqual(['a, b, c'])
    expect(headers('To: a,\n b\n\n')).toEqual(['a, b'])
    expect(headers('To:\r\n\r\n')).toEqual([''])
  })

  test('the values of header fields are read as UTF-8', () => {
    expect(headers('To: Zoë\r\n\r\n')).toEqual(['Zoë'])
  })

  test('a mail that begins with an empty line has no header fields', () => {
    for (const end of ['\r\n', '\n']) expect(headers(`${end}To: a${end}${end}`)).toEqual([])
  })

  test('the header of a mail ends at the first empty line, with or without CR', () => {
    for (const end of ['\r\n', '\n']) {
      expect(headers(`From: a${end}${end}To: b${end}`)).toEqual([])
      expect(headers(`From: a${end}To: b`)).toEqual(['b'])
    }
    expect(headers('From: a\n\r\nTo: b')).toEqual([])
  })

  test('header fields of a mail are read only in the first mebibyte', () => {
    const far = (length: number) => `X: ${'x'.repeat(length - 10)}\r\nTo: b`
    expect(headers(far(MIB))).toEqual(['b'])
    expect(headers(far(MIB + 1))).toEqual([''])
  })

  test('if several header fields have the same name, a caller that wants one value gets the first', () => {
    expect(rawHeader(bytes('To: a\r\nTo: b\r\n\r\n'), 'to')).toBe('a')
    expect(rawHeader(bytes('From: a\r\n\r\n'), 'to')).toBeUndefined()
    expect(rawHeader(bytes(''), 'to')).toBeUndefined()
  })

  test('the header of a mail is read correctly even if the mail is a part of a larger buffer', () => {
    const whole = bytes(`Subject: no\r\n${MAIL}`)
    expect(rawHeaders(whole.subarray(13), 'Subject')).toEqual(['Tide'])
    expect(rawBody(whole.subarray(13), 100).trim()).toBe('Hello')
    expect(contentHash(whole.subarray(13)).toString('hex')).toBe(hash(MAIL))
  })
})

describe('the text of a mail begins after its header', () => {
  test('the text of a mail begins after the empty line that ends the header', () => {
    expect(body(MAIL)).toBe('Hello')
    expect(body('From: a\n\nHello')).toBe('Hello')
    expect(body('From: a\r\n\r\nTo: not a header')).toBe('To: not a header')
  })

  test('if a mail has no empty line, the text begins at the first line that is no header field', () => {
    expect(body('From: a\r\nHello there\r\nTo: b\r\n')).toBe('Hello there\r\nTo: b')
    expect(body('From: a\r\n folded\r\n\tfolded\r\nHello')).toBe('Hello')
    expect(body('Hello')).toBe('Hello')
  })

  test('a header field whose name ends with blanks is not part of the mail’s text', () => {
    expect(body('From \t: a\r\nX-1_~!: b\r\nHello')).toBe('Hello')
    expect(body('Från: a\r\nHello')).toBe('Från: a\r\nHello')
    expect(body(': a')).toBe(': a')
  })

  test('the text of a mail is empty if the mail has only header fields', () => {
    expect(body('From: a')).toBe('')
    expect(body('From: a\r\n')).toBe('')
    expect(body('')).toBe('')
  })

  test('the reader returns at most as many bytes of a mail’s text as the caller requests', () => {
    expect(rawBody(bytes('Hello'), 4)).toBe('Hell')
    expect(rawBody(bytes('From: a\nHello'), 5)).toBe('Hello')
  })
})

describe('the content hash of a mail ignores the trace fields of relays, but no change of the content', () => {
  test.each([
    'Received',
    'return-path',
    'Delivered-To',
    'X-Original-To',
    'Envelope-To',
    'X-Envelope-To',
    'X-Received',
    'Authentication-Results',
    'Received-SPF',
    'ARC-Seal',
    'X-Google-Smtp-Source',
    'X-MS-Exchange-Organization-SCL',
  ])('the content hash of a mail ignores the trace field %s', (name) => {
    expect(hash(`${name}: 1\r\n folded\r\n${MAIL}`)).toBe(hash(MAIL))
    expect(hash(`${name} \t: 1\r\n${MAIL}`)).toBe(hash(MAIL))
  })

  test.each(['X-Received-2', 'Subject', 'ARC', 'X-Return-Path', 'Received-By'])(
    'the content hash of a mail covers the header field %s',
    (name) => {
      expect(hash(`${name}: 1\r\n${MAIL}`)).not.toBe(hash(MAIL))
    },
  )

  test('the content hash of a mail changes if the body changes, or if a line moves between header and body', () => {
    expect(hash(`${MAIL}!`)).not.toBe(hash(MAIL))
    expect(hash('A: 1\r\nB: 2\r\n\r\n')).not.toBe(hash('A: 1\r\n\r\nB: 2\r\n'))
  })

  test('the content hash of a mail does not ignore lines in the body that look like trace fields', () => {
    expect(hash(`${MAIL}Received: 1\r\n`)).not.toBe(hash(MAIL))
  })

  test('the content hash of a mail is the same for CRLF and LF line ends in the header', () => {
    expect(hash('A: 1\n folded\nB: 2\n\nHello')).toBe(hash('A: 1\r\n folded\r\nB: 2\r\n\r\nHello'))
  })

  test('the content hash of a mail changes if a header field changes by a single byte', () => {
    expect(contentHash(Uint8Array.of(0x41, 0x3a, 0xff))).not.toEqual(
      contentHash(Uint8Array.of(0x41, 0x3a, 0xfe)),
    )
  })
})
