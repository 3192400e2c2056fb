/** Tests which lines the service treats as the header block above a quoted message. */
import { describe, expect, test } from 'bun:test'
import {
  headerKind,
  headersWithin,
  isHeaderBlock,
} from '../../../../shared/mail/replyText/headers.ts'

const block = (...lines: string[]) => isHeaderBlock(lines, 0)
/** Tells whether the service finds a header block below the writer's own text and a blank line. */
const below = (...lines: string[]) => isHeaderBlock(['Yes.', '', ...lines], 2)

describe('a header line of a quoted mail is recognised by its label', () => {
  test('a header line of a quoted mail is recognised by its label, in any letter case, with asterisks, and in many languages', () => {
    expect(headerKind('From: Ada')).toBe('from')
    expect(headerKind('*Von:* Ada')).toBe('from')
    expect(headerKind('SUBJECT : x')).toBe('subject')
    expect(headerKind('件名：x')).toBe('subject')
    expect(headerKind('_Gesendet_: x')).toBe('sent')
    expect(headerKind('Cc:')).toBe('cc')
  })

  test('a line of a quoted mail is no header line unless a known label is among its first 32 characters', () => {
    for (const line of ['', ': x', 'Hello: x', 'From Ada', 'x From: Ada'])
      expect([line, headerKind(line)]).toEqual([line, undefined])
    expect(headerKind(`${' '.repeat(26)}From: x`)).toBe('from')
    expect(headerKind(`${' '.repeat(28)}From: x`)).toBeUndefined()
  })
})

describe('a header block above a quoted mail is recognised by its sender, its date and its labels', () => {
  test('a header block in a quoted mail has a sender, a date, and a recipient or a subject', () => {
    expect(block('From: Ada', 'Sent: Monday 9:14', 'To: Tom', 'Subject: x')).toBe(true)
    expect(block('From: Ada', 'Date: Monday', 'Subject: x')).toBe(true)
    expect(block('From: Ada', 'Sent: Monday', 'To: Tom')).toBe(true)
    expect(block('From: Ada', 'Date: Monday', 'To: Tom')).toBe(false)
    expect(block('From: Ada <ada@x.example>', 'Date: Monday')).toBe(true)
    expect(block('From: Ada', 'Date: Monday')).toBe(false)
    expect(block('To: Tom', 'Sent: Monday', 'Subject: x')).toBe(false)
    expect(block('Hello', 'From: Ada', 'Sent: Monday', 'Subject: x')).toBe(false)
    expect(isHeaderBlock([], 0)).toBe(false)
  })

  test('a header block of a quoted mail without a date counts only below a separator line (such as -----)', () => {
    const lines = ['From: Ada <ada@x.example>', 'To: Tom', 'Subject: x']
    expect(isHeaderBlock(['-----', ...lines], 1)).toBe(true)
    expect(isHeaderBlock(['-----', '', ...lines], 2)).toBe(true)
    expect(below(...lines)).toBe(false)
  })

  test('a header block of a quoted mail may contain lines without a label, but at most two in a row', () => {
    const wrapped = (count: number) => [
      'From: Ada',
      ...Array(count).fill('more'),
      'Sent: Mo',
      'Subject: x',
    ]
    expect(block(...wrapped(2))).toBe(true)
    expect(block(...wrapped(3))).toBe(false)
  })

  test('a header block of a quoted mail ends at a blank line if a new block follows', () => {
    expect(block('From: Ada', '', 'From: Tom', 'Sent: Monday', 'Subject: x')).toBe(false)
    expect(block('Sent: Monday', 'From: Tom', 'Subject: x')).toBe(true)
    expect(block('Sent: Monday', 'Subject: x', '', 'From: Tom', 'To: Ann')).toBe(false)
    expect(block('Sent: Monday', 'Subject: x', '', 'From: Tom', 'Hello')).toBe(true)
  })

  test('a header block of a quoted mail ends where the sender line of the next block begins', () => {
    expect(block('From: Ada', 'From: Tom', 'Sent: Monday', 'Subject: x')).toBe(false)
  })

  test('a header block of a quoted mail may be a single line that contains all headers', () => {
    expect(block('From: Ada <ada@x.example> Sent: 2 Mar 2026 9:14 To: Tom Subject: x')).toBe(true)
    expect(block('From: AdaSent: 9:14To: TomSubject: x')).toBe(true)
    expect(block('From: Ada To: Tom Date: 2 March')).toBe(false)
    expect(block('From: Ada <a@x.example> To: Tom Date: 2 March')).toBe(true)
    expect(block('From: Ada Sent: 9:14 To: Tom')).toBe(true)
    expect(block('发件人 李 <li@x.example> 发送日期 2026 收件人 王')).toBe(true)
    expect(block('发件人 李 发送日期 2026 收件人 王')).toBe(false)
  })

  test('in an unknown language, a header block of a quoted mail needs a sender with an address, three labels and a date with a time', () => {
    const lines = ['Ii: Ada <ada@x.example>', 'Ya: 2026-03-02 09:14', 'Uu: Tom']
    expect(below(...lines)).toBe(true)
    expect(below(lines[0]!, lines[1]!)).toBe(false)
    expect(below(lines[0]!, 'Ya: 2026', lines[2]!)).toBe(false)
    expect(below('Ii: Ada', lines[1]!, lines[2]!)).toBe(false)
    expect(isHeaderBlock(lines, 0)).toBe(false)
    expect(isHeaderBlock(['Yes.', 'text', ...lines], 2)).toBe(false)
    const labels = (count: number) => Array(count).fill('Xx: y')
    expect(below(...lines.slice(0, 2), ...labels(6))).toBe(true)
    expect(below(...lines.slice(0, 2), ...labels(7))).toBe(false)
  })

  test('a single line "From" with an address counts as a header block, unless "To" follows as in an instruction to the reader', () => {
    expect(below('From: Ada <ada@x.example>', '', 'Hello')).toBe(true)
    expect(below('From: Ada <ada@x.example>', 'To: Tom', 'Hello')).toBe(false)
    expect(below('From: Ada', '', 'Hello')).toBe(false)
    expect(isHeaderBlock(['Yes.', 'From: Ada <ada@x.example>'], 1)).toBe(false)
  })

  test('a header block of HCL Notes has a name with an organization, a date, and labels on separate lines', () => {
    const notes = ['Ann Doe/HQ/ACME', '06/18/2024 10:11 AM', '', 'To', 'Bob', 'Subject', 'Re: x']
    expect(block(...notes)).toBe(true)
    expect(block('Ann Doe', ...notes.slice(1))).toBe(false)
    expect(block(notes[0]!, 'soon', ...notes.slice(2))).toBe(false)
    expect(block(notes[0]!, '10:11 AM', ...notes.slice(2))).toBe(false)
    expect(block(...notes.slice(0, 5))).toBe(false)
    expect(block(...notes.slice(0, 3), ...notes.slice(5))).toBe(false)
  })
})

describe('headers of a quoted mail that follow the reply on the same line are removed from the reply text', () => {
  test('if quoted headers follow the reply on the same line, they begin at the first sender or date in this line', () => {
    const own = 'Yes. '
    const head = 'From: Ada <ada@x.example> Sent: 2 Mar 2026 9:14 To: Tom Subject: x'
    expect(headersWithin(own + head, [])).toBe(own.length)
    expect(headersWithin(head, [])).toBeUndefined()
    expect(headersWithin(`${own}Subject: x To: Tom`, [])).toBeUndefined()
    expect(headersWithin(`${own}From: Ada Sent: 2 Mar 2026 9:14 Subject: x`, [])).toBeUndefined()
  })

  test('quoted headers on the same line as the reply need a date with a digit, and may be in any order', () => {
    const at = (head: string) => headersWithin(`Yes. ${head}`, [])
    const ada = 'From: Ada <ada@x.example>'
    expect(at(`Sent: 2 Mar 2026 9:14 ${ada} Subject: x`)).toBe(5)
    expect(at(`Date: 2 Mar 2026 9:14 ${ada} Subject: x`)).toBe(5)
    expect(at(`${ada} Sent: soon To: Tom Subject: x`)).toBeUndefined()
    expect(at(`${ada} To: Tom Subject: x`)).toBeUndefined()
    expect(at(`${ada} Sent: 9:14 To: Tom`)).toBeUndefined()
    expect(at(`Date: 2 Mar 2026 To: Tom <tom@x.example> Subject: x`)).toBeUndefined()
    expect(at(`To: Tom ${ada} Sent: 9:14 Subject: x`)).toBe(13)
    expect(at(`${ada} Sent:${' '.repeat(60)}9:14 Subject: x`)).toBeUndefined()
  })

  test('quoted headers on the same line as the reply are searched only among the first twelve labels of the line', () => {
    const head = 'From: Ada <ada@x.example> Sent: 9:14 Subject: x'
    expect(headersWithin(`Yes. ${'Cc: Tom '.repeat(9)}${head}`, [])).toBe(5 + 72)
    expect(headersWithin(`Yes. ${'Cc: Tom '.repeat(12)}${head}`, [])).toBeUndefined()
  })

  test('quoted headers on the same line as the reply may continue on the lines below', () => {
    const rest = ['Sent: Monday 9:14', 'To: Tom', 'Subject: x']
    expect(headersWithin('Yes. From: Ada', rest)).toBe(5)
    expect(headersWithin('Yes. From: Ada', [])).toBeUndefined()
    expect(headersWithin('Yes. From: Ada', ['Hello', ...rest])).toBeUndefined()
  })

  test('quoted headers on the same line as the reply are recognised only at the start of a word', () => {
    const tail = ': Ada <ada@x.example> Sent: 2 Mar 2026 9:14 To: Tom Subject: x'
    expect(headersWithin(`Yes xfrom${tail}`, [])).toBe(undefined)
    expect(headersWithin(`YesFrom${tail}`, [])).toBe(3)
  })
})
