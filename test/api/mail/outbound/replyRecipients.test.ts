/** Tests to which recipients a reply is sent. */
import { expect, test } from 'bun:test'
import { replyRecipients } from '../../../../api/mail/outbound/replyRecipients.ts'
import { RECIPIENTS_MAX } from '../../../../api/mail/outbound/sendInput.ts'
import type { Message } from '../../../../sql/mail/messages/messages.ts'

const ME = 'agent@mail.test'
const ADA = 'ada@example.com'
const BOB = 'bob@example.com'

const original = (changes: Partial<Message>): Message =>
  ({
    inboxAddress: ME,
    direction: 'received',
    from: [ADA],
    replyTo: [],
    to: [ME],
    cc: [],
    ...changes,
  }) as Message
const recipients = (changes: Partial<Message>, replyAll = false) => {
  const { to, cc } = replyRecipients(original(changes), replyAll)
  return [to, cc]
}
const many = (count: number, name = 'a') =>
  Array.from({ length: count }, (_, n) => `${name}${n}@example.com`)

test.each<[name: string, changes: Partial<Message>, to: string[]]>([
  ['to the author', {}, [ADA]],
  ['to the addresses in Reply-To, and not to the author', { replyTo: [BOB] }, [BOB]],
  ['to the recipients of a mail that the inbox sent', { direction: 'sent', to: [BOB] }, [BOB]],
  [
    'to the recipients of a sent mail even if it names a Reply-To',
    { direction: 'sent', to: [BOB], replyTo: [ADA] },
    [BOB],
  ],
  ['once to each author', { from: [ADA, BOB, 'ADA@example.com'] }, ['ADA@example.com', BOB]],
  ['to the valid addresses only', { replyTo: ['nobody', BOB] }, [BOB]],
  ['to the author if no address in Reply-To is valid', { replyTo: ['nobody'] }, [ADA]],
  ['not to the inbox itself', { replyTo: [BOB, 'Agent+tag@MAIL.test', ME] }, [BOB]],
  ['to the inbox itself if the inbox wrote to itself', { from: [ME] }, [ME]],
  ['to at most fifty authors', { from: many(51) }, many(RECIPIENTS_MAX)],
])('a reply goes %s', (_, changes, to) => expect(recipients(changes)).toEqual([to, []]))

test.each<[name: string, changes: Partial<Message>, to: string[], cc: string[]]>([
  ['no copy if the mail has no other recipient', {}, [ADA], []],
  [
    'a copy for each other recipient',
    { to: [ME, BOB], cc: ['c@d.example'] },
    [ADA],
    [BOB, 'c@d.example'],
  ],
  [
    'no copy for a recipient that gets the reply',
    { to: [ME, 'ADA@example.com', BOB] },
    [ADA],
    [BOB],
  ],
  ['no copy for the inbox', { to: [BOB], cc: ['agent+x@mail.test'] }, [ADA], [BOB]],
  ['no copy for an invalid address', { cc: ['nobody', BOB] }, [ADA], [BOB]],
])('a reply to all recipients has %s', (_, changes, to, cc) =>
  expect(recipients(changes, true)).toEqual([to, cc]),
)

test('a reply to all may have fifty recipients, and no more', () => {
  expect(recipients({ cc: many(RECIPIENTS_MAX - 1) }, true)[1]!.length).toBe(RECIPIENTS_MAX - 1)
  expect(() => recipients({ cc: many(RECIPIENTS_MAX) }, true)).toThrow(
    'replyAll must reach at most 50 recipients',
  )
})

test('a mail without a valid sender address cannot be answered', () => {
  for (const changes of [{ from: [] }, { from: ['nobody'] }, { from: [], replyTo: ['nobody'] }])
    expect(() => recipients(changes)).toThrow('The message has no sender that can be replied to')
})
