/** Tests how the service reads complaints in the Abuse Reporting Format (ARF). */
import { describe, expect, test } from 'bun:test'
import type { Attachment, Email } from 'postal-mime'
import { readComplaint } from '../../../../shared/mail/parse/feedbackReport.ts'

const PATH = 'desk+b1@mail.example'

const part = (mimeType: string, content: string | ArrayBuffer | Uint8Array): Attachment =>
  ({ mimeType, content }) as Attachment
const report = (...lines: string[]) =>
  part('message/feedback-report', ['Feedback-Type: abuse', ...lines, ''].join('\r\n'))
const read = (...attachments: Attachment[]) => readComplaint({ attachments } as unknown as Email)
const pathsOf = (...attachments: Attachment[]) => read(...attachments)?.returnPaths ?? null

describe('a complaint is recognised by its part message/feedback-report', () => {
  test('a message is a complaint if it contains a part message/feedback-report and names an envelope sender', () => {
    expect(read(report(`Original-Mail-From: <${PATH}>`))).toEqual({ returnPaths: [PATH] })
    const text = `Feedback-Type: abuse\nReturn-Path: ${PATH}`
    expect(pathsOf(part('Message/Feedback-Report', text))).toEqual([PATH])
    expect(pathsOf(part('text/plain', text))).toBeNull()
    expect(pathsOf(part('message/feedback-report-2', text))).toBeNull()
    expect(read()).toBeNull()
  })

  test.each(['abuse', 'FRAUD', 'opt-out', 'opt-out-list'])(
    'a message with the feedback type %s is a complaint',
    (type) => {
      const text = `User-Agent: x\r\nfeedback-type:${type} \t\r\nReturn-Path: <${PATH}>`
      expect(pathsOf(part('message/feedback-report', text))).toEqual([PATH])
    },
  )

  test.each(['not-spam', 'auth-failure', 'abuse2', 'abuse fraud', ''])(
    'a message with the feedback type "%s" is not a complaint',
    (type) => {
      const text = `Feedback-Type: ${type}\r\nReturn-Path: <${PATH}>`
      expect(pathsOf(part('message/feedback-report', text))).toBeNull()
    },
  )

  test('a message is not a complaint if its feedback type is in a field such as X-Feedback-Type instead of Feedback-Type', () => {
    const text = `X-Feedback-Type: abuse\r\nReturn-Path: <${PATH}>`
    expect(pathsOf(part('message/feedback-report', text))).toBeNull()
  })
})

describe('the envelope sender is read only from the fields Return-Path and Original-Mail-From of a complaint', () => {
  test.each(['message/rfc822', 'message/rfc822-headers', 'TEXT/rfc822-headers'])(
    'the envelope sender in a complaint is read from the header of the returned part %s',
    (type) => {
      expect(pathsOf(report(), part(type, `Return-Path: <${PATH}>\r\n\r\nHello`))).toEqual([PATH])
    },
  )

  test('the envelope sender in a complaint is not read from the body of the returned mail or from other parts', () => {
    const inBody = part('message/rfc822', `Subject: x\r\n\r\nReturn-Path: <${PATH}>\r\n`)
    expect(pathsOf(report(), inBody)).toBeNull()
    expect(pathsOf(report(), part('text/plain', `Return-Path: <${PATH}>`))).toBeNull()
  })

  test('the field with the envelope sender in a complaint may have any letter case, and its address may have brackets', () => {
    expect(pathsOf(report(`return-path:${PATH} `, 'ORIGINAL-MAIL-FROM: <b@mail.example>'))).toEqual(
      [PATH, 'b@mail.example'],
    )
  })

  test('the envelope sender in a complaint must be one address, and is not read from another field', () => {
    expect(pathsOf(report(`Return-Path: ${PATH}, b@mail.example`))).toBeNull()
    expect(pathsOf(report(`X-Return-Path: ${PATH}`))).toBeNull()
    expect(pathsOf(report('Return-Path: <>'))).toBeNull()
    expect(pathsOf(report('Return-Path: desk'))).toBeNull()
  })

  test('a complaint lists each envelope sender once, and at most ten envelope senders', () => {
    const lines = Array.from({ length: 11 }, (_one, n) => `Return-Path: <a${n}@mail.example>`)
    expect(pathsOf(report(...lines))).toHaveLength(10)
    expect(pathsOf(report(lines[0]!, lines[0]!, lines[1]!))).toEqual([
      'a0@mail.example',
      'a1@mail.example',
    ])
  })
})

describe('each part of a complaint is read as text, up to a maximum length', () => {
  const text = `Feedback-Type: abuse\rReturn-Path: <desk\u0000@mail.example>\r`

  test('a part of a complaint may be text or bytes with any line ends, and NUL characters are removed', () => {
    const bytes = new TextEncoder().encode(text)
    for (const content of [text, bytes, bytes.buffer as ArrayBuffer]) {
      expect(pathsOf(part('message/feedback-report', content))).toEqual(['desk@mail.example'])
    }
  })

  test('at most 262,144 bytes of a part of a complaint are read', () => {
    const line = `\nReturn-Path: <${PATH}>`
    const padded = (length: number) =>
      part('message/feedback-report', `Feedback-Type: abuse${' '.repeat(length - 20)}${line}`)
    expect(pathsOf(padded(262_144 - line.length))).toEqual([PATH])
    expect(pathsOf(padded(262_144))).toBeNull()
  })
})
