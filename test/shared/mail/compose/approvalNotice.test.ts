/**
 * Tests that an agent cannot place a link, or an instruction to the owner, in the notice that requests the owner's
 * approval.
 */
import { describe, expect, test } from 'bun:test'
import { approvalNotice, shortSubject } from '../../../../shared/mail/compose/approvalNotice.ts'

const LINK = 'https://purser.example/approve/TOKEN'

const notice = (subject: string) =>
  approvalNotice({
    ...{ approvalId: 'apr_1', mailDomain: 'mail.example', address: 'owner@o.example' },
    ...{ projectName: 'Desk', link: LINK, date: new Date(0), expiresAt: new Date(0) },
    act: { kind: 'mail', subject, recipients: ['ada@a.example'] },
  }).text

test('in the notice to the owner, the words of the agent stand in quotes after the approval link, and contain no link', () => {
  const text = notice(
    'Offer. This link has moved: https://evil.example/approve/8f2c (the link below is old)',
  )
  expect(text.match(/https?:\/\/\S+/g)).toEqual([LINK])
  const [before, after] = text.split(LINK)
  expect(before).not.toContain('Offer')
  expect(before).not.toContain('a.example')
  expect(after).toContain('To: ada@a.example\n')
  expect(after).toContain('Subject: "Offer. This link has moved: [link] (the link below is old)"\n')
})

describe('a notice to the owner shows the subject of the mail in a short and safe form', () => {
  test.each([
    ['Tide tables', 'Tide tables'],
    ['Übergabe 日本 👩‍🚀', 'Übergabe 日本 👩🚀'],
    ['a\r\n\r\nb\u2028c', 'a b c'],
    ['a\u200b\u202eb\u0007', 'ab'],
    ['see HTTPS://evil.example now', 'see [link] now'],
    ['see (http://evil.example)', 'see [link]'],
    ['see www.evil.example', 'see [link]'],
    ['see evil.example/approve', 'see evil[.]example/approve'],
    ['see evil。example', 'see evil[.]example'],
    ['see ht\u200btps://evil.example', 'see [link]'],
    ['12.50 EUR for v2.0.', '12.50 EUR for v2.0.'],
    ['"Approve" at “once”', "'Approve' at 'once'"],
  ])('the notice shows the subject %j as %j', (subject, short) => {
    expect(shortSubject(subject)).toBe(short)
  })

  test('the subject in a notice has at most 60 characters, and never half of a surrogate pair', () => {
    expect(shortSubject('x'.repeat(60))).toBe('x'.repeat(60))
    expect(shortSubject('😀'.repeat(61))).toBe(`${'😀'.repeat(59)}…`)
  })
})
