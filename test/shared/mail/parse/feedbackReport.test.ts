/** Tests how complaints (ARF) are read. */
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

describe('a message is a complaint', () => {
  test('if a part of the type message/feedback-report names an envelope sender', () => {
    expect(read(report(`Original-Mail-From: <${PATH}>`))).toEqual({ returnPaths: [PATH] })
    const text = `Feedback-Type: abuse\nReturn-Path: ${PATH}`
    expect(pathsOf(part('Message/Feedback-Report', text))).toEqual([PATH])
    expect(pathsOf(part('text/plain', text))).toBeNull()
    expect(pathsOf(part('message/feedback-report-2', text))).toBeNull()
    expect(read()).toBeNull()
  })

  test.each(['abuse', 'FRAUD', 'opt-out', 'opt-out-list'])('of the feedback type %s', (type) => {
    const text = `User-Agent: x\r\nfeedback-type:${type} \t\r\nReturn-Path: <${PATH}>`
    expect(pathsOf(part('message/feedback-report', text))).toEqual([PATH])
  })

  test.each(['not-spam', 'auth-failure', 'abuse2', 'abuse fraud', ''])(
    'but not of the feedback type "%s"',
    (type) => {
      const text = `Feedback-Type: ${type}\r\nReturn-Path: <${PATH}>`
      expect(pathsOf(part('message/feedback-report', text))).toBeNull()
    },
  )

  test('but not if its feedback type stands in another field', () => {
    const text = `X-Feedback-Type: abuse\r\nReturn-Path: <${PATH}>`
    expect(pathsOf(part('message/feedback-report', text))).toBeNull()
  })
})

describe('the envelope sender', () => {
  test.each(['message/rfc822', 'message/rfc822-headers', 'TEXT/rfc822-headers'])(
    'is read from the header of the returned %s',
    (type) => {
      expect(pathsOf(report(), part(type, `Return-Path: <${PATH}>\r\n\r\nHello`))).toEqual([PATH])
    },
  )

  test('is not read from the body of the returned mail, nor from other parts', () => {
    const inBody = part('message/rfc822', `Subject: x\r\n\r\nReturn-Path: <${PATH}>\r\n`)
    expect(pathsOf(report(), inBody)).toBeNull()
    expect(pathsOf(report(), part('text/plain', `Return-Path: <${PATH}>`))).toBeNull()
  })

  test('may stand in any case, with or without brackets', () => {
    expect(pathsOf(report(`return-path:${PATH} `, 'ORIGINAL-MAIL-FROM: <b@mail.example>'))).toEqual(
      [PATH, 'b@mail.example'],
    )
  })

  test('is no list and no other field', () => {
    expect(pathsOf(report(`Return-Path: ${PATH}, b@mail.example`))).toBeNull()
    expect(pathsOf(report(`X-Return-Path: ${PATH}`))).toBeNull()
    expect(pathsOf(report('Return-Path: <>'))).toBeNull()
    expect(pathsOf(report('Return-Path: desk'))).toBeNull()
  })

  test('is listed once, and at most ten are listed', () => {
    const lines = Array.from({ length: 11 }, (_one, n) => `Return-Path: <a${n}@mail.example>`)
    expect(pathsOf(report(...lines))).toHaveLength(10)
    expect(pathsOf(report(lines[0]!, lines[0]!, lines[1]!))).toEqual([
      'a0@mail.example',
      'a1@mail.example',
    ])
  })
})

describe('a part', () => {
  const text = `Feedback-Type: abuse\rReturn-Path: <desk\u0000@mail.example>\r`

  test('may be text or bytes, with any line ends, and loses NUL characters', () => {
    const bytes = new TextEncoder().encode(text)
    for (const content of [text, bytes, bytes.buffer as ArrayBuffer]) {
      expect(pathsOf(part('message/feedback-report', content))).toEqual(['desk@mail.example'])
    }
  })

  test('is read up to 262,144 bytes', () => {
    const line = `\nReturn-Path: <${PATH}>`
    const padded = (length: number) =>
      part('message/feedback-report', `Feedback-Type: abuse${' '.repeat(length - 20)}${line}`)
    expect(pathsOf(padded(262_144 - line.length))).toEqual([PATH])
    expect(pathsOf(padded(262_144))).toBeNull()
  })
})
