/** Tests how the service reads the fields of a mail to send, and which errors name a wrong field. */
import { describe, expect, test } from 'bun:test'
import { ApiError } from '../../../../api/http/errors.ts'
import {
  namesOf,
  readAttachments,
  readHeaders,
  readMailboxes,
  readSendAt,
  readUnsubscribe,
  unique,
} from '../../../../api/mail/outbound/sendInput.ts'

const faultOf = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    return error instanceof ApiError ? [error.status, error.message] : error
  }
  return 'read'
}
const MIB = 1024 * 1024
const DAY_MS = 24 * 60 * 60 * 1000

describe('the service reads the mailboxes of a send request, and refuses an invalid mailbox', () => {
  test('a mailbox has an address and an optional name, and two addresses that differ only in letter case count as one', () => {
    expect(readMailboxes('to', ['Ada <ada@a.example>', 'bob@a.example', 'ADA@a.example'])).toEqual([
      { address: 'ADA@a.example', name: null },
      { address: 'bob@a.example', name: null },
    ])
    expect(readMailboxes('to', [])).toEqual([])
  })

  test('the error for an invalid mailbox names the position of the mailbox in the list', () => {
    const of = (...texts: string[]) => faultOf(() => readMailboxes('cc', texts))
    expect(of('ada@a.example', 'ada')).toEqual([
      400,
      'cc[1] must be one email address, such as ada@example.com or Ada <ada@example.com>',
    ])
    expect(of('zoë@a.example')).toEqual([
      400,
      'cc[0] must be ASCII before the @ (SMTPUTF8 is not supported)',
    ])
    expect(of('zoë')).toMatchObject([400, expect.stringContaining('one email address')])
  })

  test('the display names of recipients are stored by address, and the stored value is null if no recipient has a name', () => {
    expect(namesOf(readMailboxes('to', ['Ada <ada@a.example>', 'bob@a.example']))).toEqual({
      'ada@a.example': 'Ada',
    })
    expect(namesOf(readMailboxes('to', ['bob@a.example']))).toBeNull()
  })

  test('a recipient that occurs in several fields of a mail counts once, and the spelling of the last occurrence is kept', () => {
    expect(unique(['a@a.example', 'b@a.example', 'A@A.example'])).toEqual([
      'A@A.example',
      'b@a.example',
    ])
  })
})

describe('the service reads the attachments of a send request, and refuses an invalid attachment', () => {
  const file = { filename: 'a.txt', contentType: 'text/plain', content: 'YQ==' }
  const fault = (...given: Partial<typeof file & { contentId: string }>[]) =>
    faultOf(() => readAttachments(given.map((one) => ({ ...file, ...one }))))

  test('an attachment is read as its bytes, with its content id if the request names one', () => {
    expect(readAttachments([{ ...file, contentId: '<logo>' }, file])).toEqual([
      { ...file, contentId: 'logo', content: Buffer.from('a') },
      { ...file, contentId: null, content: Buffer.from('a') },
    ])
    expect(readAttachments()).toEqual([])
  })

  test('the media type of an attachment is required and must not be multipart', () => {
    const message = 'must be a media type such as application/pdf, and not multipart'
    for (const contentType of ['', 'text', 'multipart/mixed', 'text/plain\r\nx: y']) {
      expect(fault({}, { contentType })).toEqual([400, `attachments[1].contentType ${message}`])
    }
  })

  test('an attachment must be encoded in base64', () => {
    expect(fault({ content: 'YQ=' })).toEqual([
      400,
      'attachments[0].content must be base64 (RFC 4648, section 4)',
    ])
  })

  test('the content id of an attachment has only visible characters, and no two attachments have the same one', () => {
    for (const contentId of ['', 'a b', 'ä']) {
      expect(fault({ contentId })).toEqual([
        400,
        'attachments[0].contentId must be 1 to 255 visible ASCII characters without & # ; %, such as logo',
      ])
    }
    expect(fault({ contentId: 'logo' }, {}, { contentId: '<logo>' })).toEqual([
      400,
      'attachments[2].contentId must differ from the earlier ones',
    ])
    expect(fault({ contentId: 'a' }, { contentId: 'b' }, {}, {})).toBe('read')
  })

  test('all attachments of a mail together may have at most 25 MiB', () => {
    const half = Buffer.alloc(12.5 * MIB).toString('base64')
    expect(fault({ content: half }, { content: half })).toBe('read')
    expect(fault({ content: half }, { content: half }, {})).toEqual([
      400,
      'attachments must be at most 26214400 bytes together',
    ])
  })
})

describe('the service reads the additional header fields of a send request, and refuses a forbidden header', () => {
  test('the field `headers` of a mail, which holds additional header fields, is optional', () => {
    expect(readHeaders(undefined, false)).toBeNull()
  })

  test('the service reads the field `headers` of a mail, and the error for a forbidden header names this header', () => {
    expect(readHeaders({ 'X-Order': '5521' }, false)).toEqual({ 'X-Order': '5521' })
    expect(faultOf(() => readHeaders({ Bcc: 'a@a.example' }, false))).toMatchObject([
      400,
      expect.stringContaining('Bcc'),
    ])
  })
})

describe('the service reads the unsubscribe setting of a send request, and refuses an invalid URL or address', () => {
  const fault = (given: { url?: string; mailto?: string }) => faultOf(() => readUnsubscribe(given))

  test('the unsubscribe setting of a mail holds an https URL, a mail address, or both', () => {
    const [url, mailto] = ['https://a.example/u', 'leave@a.example']
    expect(readUnsubscribe({ url, mailto })).toEqual({ url, mailto })
    expect(readUnsubscribe({ url })).toEqual({ url, mailto: null })
    expect(readUnsubscribe({ mailto })).toEqual({ url: null, mailto })
    expect(readUnsubscribe(undefined)).toBeNull()
  })

  test('the unsubscribe setting is refused even if only its URL or only its mail address is wrong', () => {
    expect(fault({ url: 'http://a.example/u', mailto: 'leave@a.example' })).toEqual([
      400,
      'unsubscribe.url must be an https URL of at most 900 characters',
    ])
    expect(fault({ url: 'https://a.example/u', mailto: 'leave' })).toEqual([
      400,
      'unsubscribe.mailto must be one email address, such as leave@example.com',
    ])
    expect(fault({})).toEqual([400, 'unsubscribe must hold url or mailto'])
  })
})

describe('the service reads the sending time of a mail, and refuses an invalid time', () => {
  const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
  const RANGE = [400, 'sendAt must lie in the future, at most 366 days ahead']

  test('a mail without sendAt in its request has no scheduled time', () => {
    expect(readSendAt(undefined)).toBeNull()
  })

  test('the sending time of a mail must lie in the next 366 days', () => {
    const at = inMs(60_000)
    expect(readSendAt(at)).toEqual(new Date(at))
    expect(faultOf(() => readSendAt(inMs(366 * DAY_MS - 60_000)))).toBe('read')
    expect(faultOf(() => readSendAt(inMs(366 * DAY_MS + 60_000)))).toEqual(RANGE)
    expect(faultOf(() => readSendAt(inMs(366 * DAY_MS)))).toBe('read')
    expect(faultOf(() => readSendAt(inMs(0)))).toEqual(RANGE)
    expect(faultOf(() => readSendAt(inMs(-1)))).toEqual(RANGE)
  })

  test('the sending time of a mail must have a time of day and a time zone', () => {
    for (const text of ['', 'T', '2099-01-31', '2099-01-31T09:30:00', '2099-02-30T09:30:00Z']) {
      expect(faultOf(() => readSendAt(text))).toEqual([
        400,
        'sendAt must be an ISO 8601 time with a zone, such as 2026-01-31T09:30:00Z',
      ])
    }
  })
})
