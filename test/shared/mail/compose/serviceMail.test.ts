/** Tests the mails that the service itself sends to one person. */
import { describe, expect, test } from 'bun:test'
import { type AskedAct, approvalNotice } from '../../../../shared/mail/compose/approvalNotice.ts'
import { signInMail } from '../../../../shared/mail/compose/signInMail.ts'

const DATE = new Date('2026-03-01T00:00:00Z')
const EXPIRES = new Date('2026-03-02T00:00:00Z')
const LINK = 'https://console.example/s/1'

const signIn = (name = 'Ada') =>
  signInMail({
    requestId: 'sir_1',
    mailDomain: 'mail.example',
    address: 'ada@a.example',
    name,
    link: LINK,
    date: DATE,
    expiresAt: EXPIRES,
  })
const MAIL: AskedAct = {
  kind: 'mail',
  subject: 'Tide\r\n\r\ntables',
  recipients: ['b@b.example', 'c@c.example'],
}
const notice = (act: AskedAct = MAIL, address = 'ada@a.example', projectName = ' Pier\n 4 ') =>
  approvalNotice({
    approvalId: 'apr_1',
    mailDomain: 'mail.example',
    address,
    projectName,
    act,
    link: LINK,
    date: DATE,
    expiresAt: EXPIRES,
  })

test('a mail from the service itself has the service as sender and one recipient, and asks for no automatic reply', () => {
  expect(signIn()).toMatchObject({
    messageId: '<sir_1@mail.example>',
    date: DATE,
    fromName: 'Purser',
    fromAddress: 'no-reply@mail.example',
    to: ['ada@a.example'],
    cc: [],
    html: null,
    headers: { 'Auto-Submitted': 'auto-generated' },
  })
})

describe('a mail with a sign-in link tells the person where and until when to sign in', () => {
  test('a sign-in mail contains the link, the link’s expiry time, and advice for a person who did not request the link', () => {
    expect(signIn().subject).toBe('Sign in to Purser')
    expect(signIn().text).toBe(
      [
        'Ada, this link signs you in:',
        LINK,
        '',
        'It works once, until 2026-03-02T00:00:00.000Z, in the browser that asked for it.',
        'If you did not ask for it, do nothing: nobody is signed in.',
        '',
      ].join('\n'),
    )
  })

  test('a sign-in mail shows the name of the person on one line', () => {
    expect(signIn(' Ada\r\nLovelace ').text).toStartWith('Ada Lovelace, this link')
  })
})

describe('a mail that asks an owner for an approval names what the owner must approve', () => {
  test('a notice that asks an owner to approve a mail names the recipients on one line and the subject on another line', () => {
    expect(notice().subject).toBe('A mail of Pier 4 waits for you')
    expect(notice().text).toBe(
      [
        'Pier 4 wants to send a mail. It waits until you decide.',
        '',
        'Read it, then approve or reject it:',
        LINK,
        '',
        'The link works once, until 2026-03-02T00:00:00.000Z. Whoever has it can decide: do not forward it.',
        '',
        'To: b@b.example, c@c.example',
        'Subject: "Tide tables"',
        '',
      ].join('\n'),
    )
  })

  test('a notice that asks an owner to approve a payment names the amount, the host and the payee', () => {
    const { subject, text } = notice({
      kind: 'payment',
      host: 'shop.example',
      amountUsdc: '7.50',
      payTo: '0xabc',
    })
    expect(subject).toBe('A payment of Pier 4 waits for you')
    expect(text).toStartWith('Pier 4 wants to pay. The payment waits until you decide.\n\nRead it')
    expect(text).toEndWith('\n\nAmount: 7.50 USDC\nHost: shop.example\nPayee: 0xabc\n')
  })

  test('each approver gets an approval notice with a different Message-ID', () => {
    const idOf = (address: string) => notice(MAIL, address).messageId
    expect(idOf('ada@a.example')).toMatch(/^<apr_1\.[0-9a-f]{12}@mail\.example>$/)
    expect(idOf('ada@a.example')).not.toBe(idOf('cy@a.example'))
  })
})
