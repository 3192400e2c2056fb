import { expect, test } from 'bun:test'
import { readDocument } from '../../../../shared/mail/documents/readDocument.ts'

const read = (text: string | Uint8Array, filename: string, contentType = '') =>
  readDocument(Buffer.from(text as string), { filename, contentType }, Date.now())

const calendar = (component: string, lines: string) =>
  `BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:${component}\r\n${lines}END:${component}\r\nEND:VCALENDAR\r\n`

test('a file of an unknown kind has no text', async () => {
  expect(await read(Uint8Array.of(1, 0, 2, 0, 3, 255), 'data.bin')).toEqual({
    state: 'none',
    kind: null,
    omitted: [],
  })
})

test('a file whose text has no letter or digit counts as a file without text', async () => {
  expect(await read(' \n--\n', 'empty.txt')).toEqual({ state: 'none', kind: 'text', omitted: [] })
})

test('if no text can be read from a damaged file, the result names the reason', async () => {
  expect(await read('%PDF-1.7\nnothing', 'broken.pdf')).toEqual({
    state: 'failed',
    kind: 'pdf',
    reason: 'malformed',
  })
})

test('a calendar file becomes a description of its events, and a calendar file without events is read as plain text', async () => {
  const event = 'UID:1@x.test\r\nDTSTART:20990101T100000Z\r\nSUMMARY:Planning\r\n'
  const meeting = await read(calendar('VEVENT', event), 'a.ics')
  expect(meeting).toMatchObject({
    state: 'ready',
    kind: 'calendar',
    invites: [{ uid: '1@x.test' }],
  })
  expect((meeting as { text: string }).text).not.toContain('BEGIN:')
  const task = calendar('VTODO', 'UID:2@x.test\r\nSUMMARY:Buy milk\r\n')
  expect(await read(task, 'b.ics')).toMatchObject({
    state: 'ready',
    kind: 'calendar',
    invites: [],
    text: task.replaceAll('\r\n', '\n').trimEnd(),
  })
})

test('mails inside a mail file are read up to three levels deep', async () => {
  let mail = 'Subject: level 5\r\n\r\nthe end\r\n'
  for (let level = 4; level >= 0; level--) {
    mail = `Subject: level ${level}\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b${level}\r\n\r\n--b${level}\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=m.eml\r\n\r\n${mail}\r\n--b${level}--\r\n`
  }
  const { text } = (await read(mail, 'mail.eml', 'message/rfc822')) as { text: string }
  expect(text.match(/level \d/g)).toEqual(['level 0', 'level 1', 'level 2', 'level 3'])
})
