/** Tests the bytes of a mail that the service composes. */
import { describe, expect, test } from 'bun:test'
import PostalMime from 'postal-mime'
import { composeMail, type MailContent } from '../../../../shared/mail/compose/composeMail.ts'
import {
  calendarType,
  type SentAttachment,
} from '../../../../shared/mail/compose/sentAttachment.ts'

const content = (given: Partial<MailContent> = {}): MailContent => ({
  messageId: '<m1@mail.example>',
  date: new Date('2026-03-01T00:00:00Z'),
  fromName: 'Desk',
  fromAddress: 'desk@mail.example',
  to: ['ada@a.example'],
  cc: [],
  names: {},
  subject: 'Tide tables',
  text: 'Hello',
  html: null,
  inReplyTo: [],
  references: [],
  attachments: [],
  unsubscribe: null,
  headers: null,
  ...given,
})
const composed = async (given: Partial<MailContent> = {}) =>
  (await composeMail(content(given))).toString('latin1')
/** Returns the values of one header field of the composed mail. */
async function field(name: string, given: Partial<MailContent> = {}): Promise<string[]> {
  const [header = ''] = (await composed(given)).split('\r\n\r\n', 1)
  return header
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
    .filter((line) => line.startsWith(`${name}: `))
    .map((line) => line.slice(name.length + 2))
}
const file = (given: Partial<SentAttachment> = {}): SentAttachment =>
  ({
    filename: 'tide.txt',
    contentType: 'text/plain',
    contentId: null,
    content: Buffer.from('high'),
    ...given,
  }) as SentAttachment

test('a composed mail contains the given Message-ID, author, recipients and subject', async () => {
  const given = { cc: ['b@b.example'], names: { 'ada@a.example': 'Ada', 'b@b.example': 'Bö' } }
  expect(await field('Message-ID', given)).toEqual(['<m1@mail.example>'])
  expect(await field('From', given)).toEqual(['Desk <desk@mail.example>'])
  expect(await field('To', given)).toEqual(['Ada <ada@a.example>'])
  expect(await field('Cc', given)).toEqual(['=?UTF-8?B?QsO2?= <b@b.example>'])
  expect(await field('To')).toEqual(['ada@a.example'])
  expect(await field('Subject', given)).toEqual(['Tide tables'])
})

test('a subject that contains an encoded word (such as =?utf-8?Q?x?=) reaches its recipients unchanged', async () => {
  for (const subject of [
    'Invoice =?iso-8859-1?Q?paid?= today',
    '=?utf-8?B?WWVz?=',
    `Zoë =?utf-8?Q?${'a'.repeat(60)}?= "x" ${'long '.repeat(40)}end`,
  ]) {
    const mail = await PostalMime.parse(await composed({ subject }))
    expect(mail.subject).toBe(subject)
  }
})

test('a display name in a composed mail never contains an encoded word (such as =?utf-8?Q?x?=)', async () => {
  const word = '=?utf-8?Q?Bank?='
  const mail = await composed({ fromName: word, names: { 'ada@a.example': `The ${word}` } })
  const { from, to } = await PostalMime.parse(mail)
  expect(mail).not.toContain(word)
  expect(from?.name).toBe('= ?utf-8?Q?Bank?=')
  expect(to?.[0]?.name).toBe('The = ?utf-8?Q?Bank?=')
})

test('each line of a composed mail’s text ends with CRLF', async () => {
  const mail = await composed({ text: 'a\nb\rc\r\nd' })
  expect(mail).toContain('\r\n\r\na\r\nb\r\nc\r\nd')
  expect(mail).not.toMatch(/(?<!\r)\n|\r(?!\n)/)
})

test('a mail with HTML is composed of a text part and an HTML part', async () => {
  const mail = await composed({ html: '<p>a\nb</p>' })
  expect(mail).toContain('multipart/alternative')
  expect(mail).toContain('<p>a\r\nb</p>')
  expect(await composed()).not.toContain('multipart')
})

describe('the header of a composed mail contains the given fields, and no text of the caller can add another field', () => {
  test('the header of a reply names the answered message and the earlier messages of the thread', async () => {
    const ids = ['<a@a.example>', '<"b c"@a.example>']
    expect(await field('In-Reply-To', { inReplyTo: ids.slice(0, 1) })).toEqual(['<a@a.example>'])
    expect(await field('References', { references: ids })).toEqual([ids.join(' ')])
    expect(await field('In-Reply-To')).toEqual([])
    expect(await field('References')).toEqual([])
  })

  test('the header of a mail has the extra fields that the caller gives', async () => {
    expect(await field('X-Tide', { headers: { 'X-Tide': 'high' } })).toEqual(['high'])
  })

  test('a subject, a name or a file name with a line break cannot add a header field to a mail', async () => {
    const mail = await composed({
      subject: 'a\r\nX-One: 1',
      names: { 'ada@a.example': 'Ada\r\nX-Two: 2' },
      fromName: 'Desk\nX-Three: 3',
      attachments: [file({ filename: 'a\r\nX-Four: 4' })],
    })
    expect(mail).not.toMatch(/^X-/m)
  })
})

describe('each attachment is written into the composed mail with its name and its type', () => {
  test('an attachment is written in base64 with its name and its type', async () => {
    const mail = await composed({ attachments: [file()] })
    expect(mail).toContain('Content-Type: text/plain; name=tide.txt')
    expect(mail).toContain('Content-Transfer-Encoding: base64')
    expect(mail).toContain('Content-Disposition: attachment; filename=tide.txt')
    expect(mail).toContain(Buffer.from('high').toString('base64'))
  })

  test('an attachment with a Content-ID is marked as a part that the HTML part can show', async () => {
    const mail = await composed({ html: '<img>', attachments: [file({ contentId: 'c1' })] })
    expect(mail).toContain('Content-Disposition: inline; filename=tide.txt')
    expect(mail).toContain('Content-ID: <c1>')
  })

  test('an attachment that is an invitation is also included as an alternative to the text part', async () => {
    const invitation = file({
      filename: 'invite.ics',
      contentType: calendarType('REQUEST'),
      content: Buffer.from('BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n'),
    })
    const mail = await composed({ attachments: [invitation, file()] })
    expect(mail).toContain('Content-Type: text/calendar; charset=utf-8; method=REQUEST')
    expect(mail).toContain('filename=invite.ics')
    expect(mail).toContain('filename=tide.txt')
  })

  test('a calendar file that is not the invitation of the mail is added only as an attachment', async () => {
    const mail = await composed({ attachments: [file({ contentType: 'text/calendar' })] })
    expect(mail.match(/text\/calendar/g)).toHaveLength(1)
    expect(mail).not.toContain('multipart/alternative')
  })

  test('an attachment whose file name is a local path cannot make the service read this local file', async () => {
    expect(await composed({ attachments: [file({ filename: '/etc/hostname' })] })).toContain(
      Buffer.from('high').toString('base64'),
    )
  })
})

describe('a forwarded message is written into the composed mail without a change of its content', () => {
  const forwarded = (text: string | Buffer, contentType = 'message/rfc822') =>
    composed({ attachments: [file({ contentType, content: Buffer.from(text) })] })

  test('a forwarded message is included unchanged if its lines are ASCII, end with CRLF and have at most 998 characters', async () => {
    for (const text of ['A: 1\r\n\r\nHi\r\n', `A: ${'x'.repeat(995)}\r\n`, '']) {
      const mail = await forwarded(text)
      expect(mail).toContain('Content-Type: message/rfc822')
      expect(mail).toContain('Content-Transfer-Encoding: 7bit')
      expect(mail).toContain(text)
    }
    expect(await forwarded('A: 1\r\n', 'MESSAGE/global')).toContain('7bit')
  })

  test('a forwarded message with long lines, non-ASCII or null characters, or other line ends is attached as bytes', async () => {
    for (const text of ['A: ä\r\n', 'A: \0\r\n', 'A\nB', 'A\rB', `A: ${'x'.repeat(996)}\r\n`]) {
      const mail = await forwarded(text)
      expect(mail).toContain('Content-Type: application/octet-stream')
      expect(mail).not.toContain('Content-Type: message/rfc822')
      expect(mail.match(/Content-Transfer-Encoding: base64/g)).toHaveLength(1)
    }
  })
})
