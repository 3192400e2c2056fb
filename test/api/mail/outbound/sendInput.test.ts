/** Tests how the fields of a mail to send are read: recipients, attachments, unsubscribe settings, headers and time. */
import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { ApiError } from '../../../../api/http/errors.ts'
import {
  namesOf,
  RECIPIENTS_MAX,
  ReplyBody,
  readAttachments,
  readHeaders,
  readMailboxes,
  readSendAt,
  readUnsubscribe,
  SendBody,
  SUBJECT_MAX_LENGTH,
  unique,
} from '../../../../api/mail/outbound/sendInput.ts'

/** Returns the text of the 400 that refuses an input. */
function faultOf(read: () => unknown): string {
  try {
    read()
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  throw new Error('the input was read')
}

describe('the body of a mail to send', () => {
  const MAIL = { to: ['ada@example.com'], subject: 'Hello', text: 'Hi' }
  const fits = (changes: object) => Value.Check(SendBody, { ...MAIL, ...changes })
  const file = (changes: object = {}) => ({
    ...{ filename: 'a.txt', contentType: 'text/plain', content: '', ...changes },
  })

  test('needs a recipient, a subject and a text', () => {
    expect(fits({})).toBe(true)
    for (const field of ['to', 'subject', 'text']) expect(fits({ [field]: undefined })).toBe(false)
    expect(fits({ to: [], cc: ['ada@example.com'] })).toBe(false)
    expect(fits({ cc: [], bcc: [] })).toBe(true)
  })

  test('holds at most 50 recipients in each list, of at most 500 characters each', () => {
    expect(RECIPIENTS_MAX).toBe(50)
    for (const field of ['to', 'cc', 'bcc']) {
      expect(fits({ [field]: Array(50).fill('a@example.com') })).toBe(true)
      expect(fits({ [field]: Array(51).fill('a@example.com') })).toBe(false)
      expect(fits({ [field]: ['x'.repeat(500)] })).toBe(true)
      expect(fits({ [field]: ['x'.repeat(501)] })).toBe(false)
    }
  })

  test('has a subject of one line of at most 998 characters', () => {
    expect(SUBJECT_MAX_LENGTH).toBe(998)
    for (const subject of ['', 'ä'.repeat(998)]) expect(fits({ subject })).toBe(true)
    for (const subject of ['x'.repeat(999), 'a\nb', 'a\r', 'a\n']) {
      expect([subject, fits({ subject })]).toEqual([subject, false])
    }
  })

  test('holds texts of at most 2 MB', () => {
    const longest = 'x'.repeat(2_097_152)
    for (const field of ['text', 'html']) {
      expect(fits({ [field]: longest })).toBe(true)
      expect(fits({ [field]: `${longest}x` })).toBe(false)
      expect(Value.Check(ReplyBody, { text: '', [field]: `${longest}x` })).toBe(false)
    }
  })

  test('holds at most 50 attachments, whose names have 1 to 255 characters and no control character', () => {
    expect(fits({ attachments: Array(50).fill(file()) })).toBe(true)
    expect(fits({ attachments: Array(51).fill(file()) })).toBe(false)
    for (const filename of ['a', 'ä b.pdf', 'x'.repeat(255), '../a']) {
      expect([filename, fits({ attachments: [file({ filename })] })]).toEqual([filename, true])
    }
    for (const filename of ['', 'x'.repeat(256), 'a\nb', 'a\0', 'a\x7f', 'a\x85', 'a\x9f']) {
      expect([filename, fits({ attachments: [file({ filename })] })]).toEqual([filename, false])
    }
  })
})

describe('a list of recipients', () => {
  test('gives addresses and names in order', () => {
    expect(readMailboxes('to', ['ada@example.com', '"Doe, Jane" <jane@Example.NET>'])).toEqual([
      { address: 'ada@example.com', name: null },
      { address: 'jane@example.net', name: 'Doe, Jane' },
    ])
    expect(readMailboxes('cc', [])).toEqual([])
  })

  test('names each address once, in any case, with the name that comes last', () => {
    const read = readMailboxes('to', ['A <a@example.com>', 'b@example.com', 'B <A@EXAMPLE.com>'])
    expect(read).toEqual([
      { address: 'A@example.com', name: 'B' },
      { address: 'b@example.com', name: null },
    ])
  })

  test('is refused with the position of the first text that is no address', () => {
    for (const text of [
      '',
      'ada',
      'ada@',
      'a@example.com, b@example.com',
      'a@b@example.com',
      'ä',
    ]) {
      expect(faultOf(() => readMailboxes('bcc', ['ada@example.com', text, 'also wrong']))).toBe(
        'bcc[1] must be one email address, such as ada@example.com or Ada <ada@example.com>',
      )
    }
  })

  test('is refused with a text of its own for an address that is not ASCII before the @', () => {
    for (const text of ['ädа@example.com', 'Ada <adä@example.com>', '用户@example.com', 'a\tb@c']) {
      expect([text, faultOf(() => readMailboxes('to', [text]))]).toEqual([
        text,
        'to[0] must be ASCII before the @ (SMTPUTF8 is not supported)',
      ])
    }
    for (const text of ['Ädа <ada example.com>', 'ada@', 'Ä <a@b> x']) {
      expect(faultOf(() => readMailboxes('to', [text]))).toStartWith('to[0] must be one email')
    }
    expect(readMailboxes('to', ['Ädа <ada@bücher.example>'])[0]?.address).toBe(
      'ada@xn--bcher-kva.example',
    )
  })

  test('has its names by address, or none', () => {
    const ada = { address: 'ada@example.com', name: 'Ada' }
    const bob = { address: 'bob@example.com', name: null }
    expect(namesOf([ada, bob])).toEqual({ 'ada@example.com': 'Ada' })
    expect(namesOf([bob])).toBeNull()
    expect(namesOf([])).toBeNull()
  })

  test('loses duplicates in any case, and keeps the order', () => {
    expect(unique(['b@example.com', 'a@example.com', 'B@example.com'])).toEqual([
      ...['B@example.com', 'a@example.com'],
    ])
    expect(unique([])).toEqual([])
  })
})

describe('the attachments of a mail', () => {
  const file = (changes: object = {}) => ({
    ...{ filename: 'a.pdf', contentType: 'application/pdf', content: 'YWJj', ...changes },
  })

  test('are decoded, and none are given for an absent list', () => {
    expect(readAttachments()).toEqual([])
    expect(readAttachments([file(), file({ content: '', contentId: '<logo>' })])).toEqual([
      {
        filename: 'a.pdf',
        contentType: 'application/pdf',
        contentId: null,
        content: Buffer.from('abc'),
      },
      {
        filename: 'a.pdf',
        contentType: 'application/pdf',
        contentId: 'logo',
        content: Buffer.alloc(0),
      },
    ])
  })

  test('have a media type other than multipart', () => {
    expect(readAttachments([file({ contentType: 'text/plain; charset=utf-8' })])).toHaveLength(1)
    for (const contentType of ['', 'pdf', 'multipart/mixed', 'text/plain\r\nX: y']) {
      expect(faultOf(() => readAttachments([file(), file({ contentType })]))).toBe(
        'attachments[1].contentType must be a media type such as application/pdf, and not multipart',
      )
    }
  })

  test('are base64 with padding', () => {
    for (const content of ['YQ', 'Y', 'YQ=', '====', 'YW Jj', '_-__', 'YQ==YQ==']) {
      expect([content, faultOf(() => readAttachments([file({ content })]))]).toEqual([
        content,
        'attachments[0].content must be base64 (RFC 4648, section 4)',
      ])
    }
  })

  test('have at most 25 MB together', () => {
    const half = Buffer.alloc(13_107_200).toString('base64')
    const two = readAttachments([file({ content: half }), file({ content: half })])
    expect(two.map(({ content }) => content.length)).toEqual([13_107_200, 13_107_200])
    const one = file({ content: 'YQ==' })
    expect(
      faultOf(() => readAttachments([file({ content: half }), file({ content: half }), one])),
    ).toBe('attachments must be at most 26214400 bytes together')
  })

  test('have different Content-IDs of 1 to 255 visible ASCII characters', () => {
    const ids = (...given: (string | undefined)[]) =>
      readAttachments(
        given.map((contentId) => (contentId === undefined ? file() : file({ contentId }))),
      )
    expect(
      ids('a', 'b', undefined, undefined, 'x'.repeat(255)).map((one) => one.contentId),
    ).toEqual([...['a', 'b', null, null, 'x'.repeat(255)]])
    for (const contentId of ['', 'a b', 'ä', '<>', '<a', 'x'.repeat(256), 'a\r\n']) {
      expect([contentId, faultOf(() => ids('a', contentId))]).toEqual([
        contentId,
        'attachments[1].contentId must be 1 to 255 visible ASCII characters, such as logo',
      ])
    }
    expect(faultOf(() => ids('a', undefined, '<a>'))).toBe(
      'attachments[2].contentId must differ from the earlier ones',
    )
  })
})

describe('the header fields of a mail', () => {
  test('are returned as given, or null', () => {
    expect(readHeaders(undefined, true)).toBeNull()
    expect(readHeaders({}, false)).toEqual({})
    expect(readHeaders({ 'X-Order': '5521' }, true)).toEqual({ 'X-Order': '5521' })
  })

  test('are refused with the name of the field', () => {
    expect(faultOf(() => readHeaders({ Bcc: 'eve@example.com' }, false))).toBe(
      'headers.Bcc must be X-*, List-* or Auto-Submitted',
    )
    const leave = { 'List-Unsubscribe': '<https://a.example/>' }
    expect(readHeaders(leave, false)).toEqual(leave)
    expect(faultOf(() => readHeaders(leave, true))).toBe(
      'headers.List-Unsubscribe must not stand beside unsubscribe',
    )
  })
})

describe('the unsubscribe settings of a mail', () => {
  test('hold a URL, an address, or both', () => {
    expect(readUnsubscribe(undefined)).toBeNull()
    const url = 'https://a.example/leave?u=1'
    const mailto = 'leave@example.com'
    expect(readUnsubscribe({ url })).toEqual({ url, mailto: null })
    expect(readUnsubscribe({ mailto })).toEqual({ url: null, mailto })
    expect(readUnsubscribe({ url, mailto })).toEqual({ url, mailto })
    expect(faultOf(() => readUnsubscribe({}))).toBe('unsubscribe must hold url or mailto')
  })

  test('are refused if either is malformed', () => {
    const base = 'https://a.example/'
    expect(readUnsubscribe({ url: base + 'x'.repeat(900 - base.length) })?.url).toHaveLength(900)
    for (const url of ['', 'http://a.example/', 'leave', base + 'x'.repeat(901 - base.length)]) {
      expect(faultOf(() => readUnsubscribe({ url, mailto: 'leave@example.com' }))).toBe(
        'unsubscribe.url must be an https URL of at most 900 characters',
      )
    }
    for (const mailto of ['', 'leave', 'Leave <leave@example.com>', 'mailto:a@example.com?x=y z']) {
      expect(faultOf(() => readUnsubscribe({ url: base, mailto }))).toBe(
        'unsubscribe.mailto must be one email address, such as leave@example.com',
      )
    }
  })
})

describe('the time of a mail', () => {
  const DAY_MS = 86_400_000
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

  test('is read with its zone, or null', () => {
    expect(readSendAt(undefined)).toBeNull()
    const at = inMs(DAY_MS)
    expect(readSendAt(at)).toEqual(new Date(at))
    expect(readSendAt(at.replace('Z', '-00:00'))).toEqual(new Date(at))
  })

  test('is refused without a zone or as a date', () => {
    for (const text of [
      '',
      '2030-01-31',
      inMs(DAY_MS).slice(0, -1),
      inMs(DAY_MS).replace('T', ' '),
      'T',
    ]) {
      expect([text, faultOf(() => readSendAt(text))]).toEqual([
        text,
        'sendAt must be an ISO 8601 time with a zone, such as 2026-01-31T09:30:00Z',
      ])
    }
  })

  test('lies in the future, at most 366 days ahead', () => {
    for (const ms of [10_000, 366 * DAY_MS - 10_000, 366 * DAY_MS]) {
      expect(readSendAt(inMs(ms))).toBeInstanceOf(Date)
    }
    for (const ms of [0, -1, -DAY_MS, 366 * DAY_MS + 10_000]) {
      expect(faultOf(() => readSendAt(inMs(ms)))).toBe(
        'sendAt must lie in the future, at most 366 days ahead',
      )
    }
  })
})
