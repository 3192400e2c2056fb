/** Tests which facts of a bounce the service keeps if the bounce comes from a sender who is not on an allow list. */
import { expect, test } from 'bun:test'
import type { Bounce } from '../../../../shared/mail/parse/dsn.ts'
import type { ParsedMail } from '../../../../shared/mail/parse/parseMail.ts'
import { reduceBounce } from '../../../../shared/mail/parse/reduceBounce.ts'

const PROOF = { messageId: '<m1@mail.example>', address: 'ada@b.example' }
const PLACE = { inboxAddress: 'desk@mail.example', mailDomain: 'mail.example' }
const FOREIGN = 'Ignore the owner'

const mail = (hash = 'h1') =>
  ({
    links: { messageId: `<${FOREIGN}@b.example>`, inReplyTo: [FOREIGN], references: [FOREIGN] },
    contentHash: Buffer.from(hash),
    from: [FOREIGN],
    to: [FOREIGN],
    cc: [FOREIGN],
    replyTo: [FOREIGN],
    subject: FOREIGN,
    text: FOREIGN,
    html: FOREIGN,
    extractedText: FOREIGN,
    codes: [FOREIGN],
    mailLinks: [FOREIGN],
    attachments: [FOREIGN],
    labels: ['received', 'unread', FOREIGN],
    complaint: { returnPaths: [FOREIGN] },
  }) as unknown as ParsedMail
const bounce = (recipients: Bounce['recipients']): Bounce => ({
  isReport: true,
  messageIds: [FOREIGN],
  recipients,
  proof: PROOF,
})
const RECIPIENT = {
  addresses: ['ada@b.example'],
  action: 'delayed',
  status: '4.2.2',
  diagnostic: FOREIGN,
} as const
const reduced = (
  recipients: Bounce['recipients'] = [{ ...RECIPIENT, addresses: ['ada@b.example'] }],
) => reduceBounce(mail(), { bounce: bounce(recipients), proof: PROOF }, PLACE)

test('a reduced bounce (stored despite an allow list) contains no text from the foreign mail host', () => {
  expect(JSON.stringify(reduced())).not.toContain(FOREIGN)
})

test('a reduced bounce (stored despite an allow list) contains the recipient of the copy that bounced, the action and the status', () => {
  const { subject, text, extractedText, html } = reduced()
  expect(subject).toBe('Undelivered mail returned to sender')
  expect(text).toBe(
    'A mail host returned a message of yours. The sender of its report is not on the allow list.\n\nRecipient: ada@b.example\nAction: delayed\nStatus: 4.2.2',
  )
  expect([extractedText, html]).toEqual([text, null])
})

test('a reduced bounce (stored despite an allow list) has a text even if its report has no status or no recipient', () => {
  expect(reduced([{ ...RECIPIENT, addresses: [], status: null }]).text).toEndWith('Status: none')
  expect(reduced([]).text).toEndWith('Action: failed\nStatus: none')
})

test('a reduced bounce (stored despite an allow list) is stored as a reply to the sent message in the same inbox', () => {
  const { links, to, labels } = reduced()
  expect(links.inReplyTo).toEqual(['<m1@mail.example>'])
  expect(to).toEqual(['desk@mail.example'])
  expect(labels).toEqual(['received', 'unread'])
})

test('the Message-ID of a reduced bounce (stored despite an allow list) has the service’s domain, and depends on the bounce’s content', () => {
  const idOf = (hash: string) =>
    reduceBounce(mail(hash), { bounce: bounce([]), proof: PROOF }, PLACE).links.messageId
  expect(idOf('h1')).toMatch(/^<[0-9a-f]{32}@mail\.example>$/)
  expect(idOf('h1')).toBe(idOf('h1'))
  expect(idOf('h1')).not.toBe(idOf('h2'))
})
