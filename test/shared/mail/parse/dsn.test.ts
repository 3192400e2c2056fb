import { expect, test } from 'bun:test'
import PostalMime from 'postal-mime'
import { isAddressDead, isNoSuchMailbox, readBounce } from '../../../../shared/mail/parse/dsn.ts'
import {
  type BounceOf,
  exchangeBounce,
  eximBounce,
  gmailBounce,
  qmailBounce,
  standardBounce,
} from '../../../support/mail/bounceMails.ts'

const OF: BounceOf = {
  messageId: '<offer@mail.test>',
  recipient: 'ada@example.com',
  to: 'agent@mail.test',
}
const read = async (raw: string) =>
  readBounce(await PostalMime.parse(raw, { forceRfc822Attachments: true }))

test('the recipient, status and diagnostic text of a bounce report are read (RFC 3464)', async () => {
  expect(await read(standardBounce(OF))).toEqual({
    isReport: true,
    messageIds: ['<offer@mail.test>'],
    recipients: [
      {
        addresses: ['ada@example.com'],
        action: 'failed',
        status: '5.1.1',
        diagnostic: '550 5.1.1 <ada@example.com>: Recipient address rejected',
      },
    ],
    proof: null,
  })
  for (const form of ['text/rfc822-headers', 'message/rfc822-headers', 'message/global-headers']) {
    expect((await read(standardBounce(OF, form)))?.messageIds).toEqual(['<offer@mail.test>'])
  }
  const vague = await read(
    standardBounce({ ...OF, status: '5.0.0', said: '550 5.2.2 Mailbox full' }),
  )
  expect(vague?.recipients[0]?.status).toBe('5.2.2')
  const crlf = await read(standardBounce(OF).replaceAll('\n', '\r\n'))
  expect(crlf?.recipients[0]?.addresses).toEqual(['ada@example.com'])
})

test('a bounce report may name two addresses of a forwarded recipient, or report a delay, whereas a report of success is no bounce', async () => {
  const forwarded = { ...OF, final: 'ada@home.test', original: OF.recipient }
  expect((await read(standardBounce(forwarded)))?.recipients[0]?.addresses).toEqual([
    'ada@example.com',
    'ada@home.test',
  ])
  const delayed = await read(standardBounce({ ...OF, action: 'delayed', status: '4.4.1' }))
  expect(delayed?.recipients[0]?.action).toBe('delayed')
  expect(await read(standardBounce({ ...OF, action: 'delivered', status: '2.0.0' }))).toBeNull()
})

test('the service reads the older bounce formats of qmail, Exim, Exchange and Gmail', async () => {
  for (const form of [qmailBounce, eximBounce, exchangeBounce, gmailBounce]) {
    const bounce = await read(form(OF))
    expect([
      form.name,
      bounce?.messageIds,
      bounce?.recipients.map(({ addresses }) => addresses),
    ]).toEqual([form.name, ['<offer@mail.test>'], [['ada@example.com']]])
    expect([form.name, bounce?.recipients[0]?.status]).toEqual([form.name, '5.1.1'])
  }
})

test('a mail that does not have the form of a delivery report is not a bounce', async () => {
  const body = `\n\n550 5.1.1 ada@example.com failed\nMessage-ID: <offer@mail.test>\n`
  for (const mail of [
    `From: ada@example.com\nSubject: Undeliverable${body}`,
    `From: postmaster@example.com\nSubject: Maintenance\n\nWrite to ada@example.com for more.\n`,
    `From: Ada <ada@example.com>\nSubject: Out of office\nAuto-Submitted: auto-replied\n\nI am away.\n`,
    'Subject: x\n\n',
  ]) {
    expect([mail, await read(mail)]).toEqual([mail, null])
  }
})

test('from a hostile bounce report, at most 100 recipients and no null character are read', async () => {
  const many = Array.from(
    { length: 5_000 },
    (_, n) => `Final-Recipient: rfc822; a${n}@x.test\nAction: failed\nStatus: 5.1.1\n`,
  )
  const wide = standardBounce(OF).replace(
    'Final-Recipient: rfc822; ada@example.com',
    `\n${many.join('\n')}`,
  )
  expect((await read(wide))?.recipients.length).toBeLessThanOrEqual(100)
  for (const filler of [
    'a@',
    '@',
    '<',
    '5.5.',
    'a.',
    '> \t',
    'Message-ID:',
    '\n\n',
    'x'.repeat(50),
  ]) {
    const text = filler.repeat(Math.ceil(300_000 / filler.length))
    await read(`From: MAILER-DAEMON@mx.test\n\n550 failed ${text}`)
  }
  const nul = await read(standardBounce({ ...OF, said: '550 5.1.1 \u0000 gone' }))
  expect(JSON.stringify(nul)).not.toContain('\\u0000')
})

test('a permanent status code about the recipient’s address means that the address does not exist', () => {
  for (const status of ['5.1.1', '5.1.10', '5.2.1', '5.2.2', '5.0.0', '5.4.1']) {
    expect([status, isAddressDead(status)]).toEqual([status, true])
  }
  for (const status of [null, '4.2.2', '2.0.0', '5.2.3', '5.3.4', '5.6.0', '5.7.1', '5.7.26']) {
    expect([status, isAddressDead(status)]).toEqual([status, false])
  }
  // These two status codes are about the address of the sender (RFC 3463 §3.2), so they do not show that the recipient
  // is missing.
  for (const status of ['5.1.7', '5.1.8']) {
    expect([status, isAddressDead(status)]).toEqual([status, false])
  }
})

test('a refusal at RCPT shows that the mailbox is missing only if the refusal has one of certain enhanced status codes', () => {
  for (const reply of [
    '550 5.1.1 unknown',
    '550-5.1.1 The email account',
    '556 5.1.10 null MX',
    '550 5.2.1 x',
  ]) {
    expect([reply, isNoSuchMailbox(reply)]).toEqual([reply, true])
  }
  for (const reply of [
    '450 4.1.1 later',
    '550 no',
    '550 5.7.1 spam',
    '550 5.1.11 x',
    '250 5.1.1',
    '550 5.2.10 x',
  ]) {
    expect([reply, isNoSuchMailbox(reply)]).toEqual([reply, false])
  }
})
