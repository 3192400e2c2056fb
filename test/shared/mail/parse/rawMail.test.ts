/** Tests how the bytes of a mail are split and hashed without a MIME parser. */
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

describe('the header fields of a name', () => {
  test('come in their order, whatever the case of the name', () => {
    expect(headers('To: a\r\nFrom: c\r\nTO: b\r\n\r\nbody')).toEqual(['a', 'b'])
    expect(headers('to: a\r\n\r\n', 'TO')).toEqual(['a'])
    expect(headers('Total: 1\r\nX-To: 2\r\n\r\n')).toEqual([])
  })

  test('are unfolded and trimmed', () => {
    expect(headers('To: a,\r\n b,\r\n\t  c \r\nFrom: d\r\n\r\n')).toEqual(['a, b, c'])
    expect(headers('To: a,\n b\n\n')).toEqual(['a, b'])
    expect(headers('To:\r\n\r\n')).toEqual([''])
  })

  test('are read as UTF-8', () => {
    expect(headers('To: Zoë\r\n\r\n')).toEqual(['Zoë'])
  })

  test('are absent in a mail that begins with an empty line', () => {
    for (const end of ['\r\n', '\n']) expect(headers(`${end}To: a${end}${end}`)).toEqual([])
  })

  test('stand before the first empty line, with or without CR', () => {
    for (const end of ['\r\n', '\n']) {
      expect(headers(`From: a${end}${end}To: b${end}`)).toEqual([])
      expect(headers(`From: a${end}To: b`)).toEqual(['b'])
    }
    expect(headers('From: a\n\r\nTo: b')).toEqual([])
  })

  test('end within the first mebibyte', () => {
    const far = (length: number) => `X: ${'x'.repeat(length - 10)}\r\nTo: b`
    expect(headers(far(MIB))).toEqual(['b'])
    expect(headers(far(MIB + 1))).toEqual([''])
  })

  test('of the first name alone are the first header field', () => {
    expect(rawHeader(bytes('To: a\r\nTo: b\r\n\r\n'), 'to')).toBe('a')
    expect(rawHeader(bytes('From: a\r\n\r\n'), 'to')).toBeUndefined()
    expect(rawHeader(bytes(''), 'to')).toBeUndefined()
  })

  test('are read of a part of a larger buffer', () => {
    const whole = bytes(`Subject: no\r\n${MAIL}`)
    expect(rawHeaders(whole.subarray(13), 'Subject')).toEqual(['Tide'])
    expect(rawBody(whole.subarray(13), 100).trim()).toBe('Hello')
    expect(contentHash(whole.subarray(13)).toString('hex')).toBe(hash(MAIL))
  })
})

describe('the text after the header', () => {
  test('follows the empty line', () => {
    expect(body(MAIL)).toBe('Hello')
    expect(body('From: a\n\nHello')).toBe('Hello')
    expect(body('From: a\r\n\r\nTo: not a header')).toBe('To: not a header')
  })

  test('begins at the first line that is no field, even without an empty line', () => {
    expect(body('From: a\r\nHello there\r\nTo: b\r\n')).toBe('Hello there\r\nTo: b')
    expect(body('From: a\r\n folded\r\n\tfolded\r\nHello')).toBe('Hello')
    expect(body('Hello')).toBe('Hello')
  })

  test('lacks fields whose name ends with blanks', () => {
    expect(body('From \t: a\r\nX-1_~!: b\r\nHello')).toBe('Hello')
    expect(body('Från: a\r\nHello')).toBe('Från: a\r\nHello')
    expect(body(': a')).toBe(': a')
  })

  test('is empty if the mail has only fields', () => {
    expect(body('From: a')).toBe('')
    expect(body('From: a\r\n')).toBe('')
    expect(body('')).toBe('')
  })

  test('has at most the wanted bytes', () => {
    expect(rawBody(bytes('Hello'), 4)).toBe('Hell')
    expect(rawBody(bytes('From: a\nHello'), 5)).toBe('Hello')
  })
})

describe('the content hash', () => {
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
  ])('ignores the trace field %s', (name) => {
    expect(hash(`${name}: 1\r\n folded\r\n${MAIL}`)).toBe(hash(MAIL))
    expect(hash(`${name} \t: 1\r\n${MAIL}`)).toBe(hash(MAIL))
  })

  test.each(['X-Received-2', 'Subject', 'ARC', 'X-Return-Path', 'Received-By'])(
    'covers the field %s',
    (name) => {
      expect(hash(`${name}: 1\r\n${MAIL}`)).not.toBe(hash(MAIL))
    },
  )

  test('covers the body and its place after the header', () => {
    expect(hash(`${MAIL}!`)).not.toBe(hash(MAIL))
    expect(hash('A: 1\r\nB: 2\r\n\r\n')).not.toBe(hash('A: 1\r\n\r\nB: 2\r\n'))
  })

  test('keeps trace fields in the body', () => {
    expect(hash(`${MAIL}Received: 1\r\n`)).not.toBe(hash(MAIL))
  })

  test('is the same for CRLF and LF line ends of the header', () => {
    expect(hash('A: 1\n folded\nB: 2\n\nHello')).toBe(hash('A: 1\r\n folded\r\nB: 2\r\n\r\nHello'))
  })

  test('tells fields with other bytes apart', () => {
    expect(contentHash(Uint8Array.of(0x41, 0x3a, 0xff))).not.toEqual(
      contentHash(Uint8Array.of(0x41, 0x3a, 0xfe)),
    )
  })
})
