import { expect, test } from 'bun:test'
import {
  decodeBase64,
  isAttachmentType,
  parseContentId,
} from '../../../../shared/mail/compose/sentAttachment.ts'

test('media types of attachments may have parameters, and malformed or multipart types are refused', () => {
  for (const type of [
    'application/pdf',
    'IMAGE/svg+xml',
    'text/plain; charset=utf-8',
    'text/calendar;method=REQUEST; name="a b.ics"',
    'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  ]) {
    expect([type, isAttachmentType(type)]).toEqual([type, true])
  }
  for (const type of [
    '',
    'pdf',
    'application/',
    'a/b/c',
    'text/plain;',
    'text/plain; charset',
    'text/plain\r\nBcc: v@example.org',
    'text/plain; name="a\r\nb"',
    'text/plain; name="a"b"',
    'multipart/mixed; boundary=x',
    'Multipart/alternative',
    'téxt/plain',
    `a/${'b'.repeat(255)}`,
  ]) {
    expect([type, isAttachmentType(type)]).toEqual([type, false])
  }
})

test('the angle brackets of a Content-ID are removed, and a malformed Content-ID is refused', () => {
  expect(parseContentId('logo')).toBe('logo')
  expect(parseContentId('<logo@example.com>')).toBe('logo@example.com')
  for (const text of ['', '<>', 'a b', 'a>b', '<a', 'a\r\nb', 'ü', '"a"', 'x'.repeat(256)]) {
    expect([text, parseContentId(text)]).toEqual([text, null])
  }
})

test('the base64 of an attachment is checked strictly, but may contain line breaks', () => {
  expect(decodeBase64('')?.toString()).toBe('')
  expect(decodeBase64('aGVs\r\nbG8=\n')?.toString()).toBe('hello')
  for (const text of ['a', 'aGVsbG8', 'aGVs bG8=', 'aGVsbG8-', '====', 'a===', 'data:,x', '=AAA']) {
    expect([text, decodeBase64(text)]).toEqual([text, null])
  }
})
