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

describe('the service finds the header fields with a given name', () => {
  test('the header fields of a name come in their order, whatever the case of the name', () => {
    expect(headers('To: a\r\nFrom: c\r\nTO: b\r\n\r\nbody')).toEqual(['a', 'b'])
    expect(headers('to: a\r\n\r\n', 'TO')).toEqual(['a'])
    expect(headers('Total: 1\r\nX-To: 2\r\n\r\n')).toEqual([])
  })

  test('the header fields of a name are unfolded and trimmed', () => {
    expect(headers('To: a,\r\n b,\r\n\t  c \r\nFrom: d\r\n\r\n')).toEqual(['a, b, c'])
    expect(headers('To: a,\n b\n\n')).toEqual(['a, b'])
    expect(headers('To:\r\n\r\n')).toEqual([''])
  })

  test('the header fields of a name are read as UTF-8', () => {
    expect(headers('To: Zoë\r\n\r\n')).toEqual(['Zoë'])
  })

  test('a mail that begins with an empty line has no header fields', () => {
    for (const end of ['\r\n', '\n']) expect(headers(`${end}To: a${end}${end}`)).toEqual([])
  })

  test('the header fields of a mail end at the first empty line, with or without CR', () => {
    for (const end of ['\r\n', '\n']) {
      expect(headers(`From: a${end}${end}To: b${end}`)).toEqual([])
      expect(headers(`From: a${end}To: b`)).toEqual(['b'])
    }
    expect(headers('From: a\n\r\nTo: b')).toEqual([])
  })

  test('the header fields of a mail are read only in the first mebibyte', () => {
    const far = (length: number) => `X: ${'x'.repeat(length - 10)}\r\nTo: b`
    expect(headers(far(MIB))).toEqual(['b'])
    expect(headers(far(MIB + 1))).toEqual([''])
  })

  test('if a name occurs in several header fields, a single value is read from the first field', () => {
    expect(rawHeader(bytes('To: a\r\nTo: b\r\n\r\n'), 'to')).toBe('a')
    expect(rawHeader(bytes('From: a\r\n\r\n'), 'to')).toBeUndefined()
    expect(rawHeader(bytes(''), 'to')).toBeUndefined()
  })

  test('the header fields are read correctly even if the mail is a part of a larger buffer', () => {
    const whole = bytes(`Subject: no\r\n${MAIL}`)
    expect(rawHeaders(whole.subarray(13), 'Subject')).toEqual(['Tide'])
    expect(rawBody(whole.subarray(13), 100).trim()).toBe('Hello')
    expect(contentHash(whole.subarray(13)).toString('hex')).toBe(hash(MAIL))
  })
})

describe('the service finds the text after the header of a mail', () => {
  test('the text after the header begins after the empty line', () => {
    expect(body(MAIL)).toBe('Hello')
    expect(body('From: a\n\nHello')).toBe('Hello')
    expect(body('From: a\r\n\r\nTo: not a header')).toBe('To: not a header')
  })

  test('if there is no empty line, the text begins at the first line that is not a header field', () => {
    expect(body('From: a\r\nHello there\r\nTo: b\r\n')).toBe('Hello there\r\nTo: b')
    expect(body('From: a\r\n folded\r\n\tfolded\r\nHello')).toBe('Hello')
    expect(body('Hello')).toBe('Hello')
  })

  test('a header field whose name ends with blanks does not belong to the text after the header', () => {
    expect(body('From \t: a\r\nX-1_~!: b\r\nHello')).toBe('Hello')
    expect(body('Från: a\r\nHello')).toBe('Från: a\r\nHello')
    expect(body(': a')).toBe(': a')
  })

  test('the text after the header is empty if the mail has only header fields', () => {
    expect(body('From: a')).toBe('')
    expect(body('From: a\r\n')).toBe('')
    expect(body('')).toBe('')
  })

  test('the text after the header has at most the number of bytes that the caller wants', () => {
    expect(rawBody(bytes('Hello'), 4)).toBe('Hell')
    expect(rawBody(bytes('From: a\nHello'), 5)).toBe('Hello')
  })
})

describe('the service computes the content hash of a mail', () => {
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
  ])('the content hash ignores the trace field %s', (name) => {
    expect(hash(`${name}: 1\r\n folded\r\n${MAIL}`)).toBe(hash(MAIL))
    expect(hash(`${name} \t: 1\r\n${MAIL}`)).toBe(hash(MAIL))
  })

  test.each(['X-Received-2', 'Subject', 'ARC', 'X-Return-Path', 'Received-By'])(
    'the content hash covers the header field %s',
    (name) => {
      expect(hash(`${name}: 1\r\n${MAIL}`)).not.toBe(hash(MAIL))
    },
  )

  test('the content hash differs if the body differs, or if a line moves between the header and the body', () => {
    expect(hash(`${MAIL}!`)).not.toBe(hash(MAIL))
    expect(hash('A: 1\r\nB: 2\r\n\r\n')).not.toBe(hash('A: 1\r\n\r\nB: 2\r\n'))
  })

  test('the content hash does not ignore trace fields in the body', () => {
    expect(hash(`${MAIL}Received: 1\r\n`)).not.toBe(hash(MAIL))
  })

  test('the content hash is the same for CRLF and LF line ends in the header', () => {
    expect(hash('A: 1\n folded\nB: 2\n\nHello')).toBe(hash('A: 1\r\n folded\r\nB: 2\r\n\r\nHello'))
  })

  test('the content hash differs if a header field has other bytes', () => {
    expect(contentHash(Uint8Array.of(0x41, 0x3a, 0xff))).not.toEqual(
      contentHash(Uint8Array.of(0x41, 0x3a, 0xfe)),
    )
  })
})
