/**
 * Tests which fields a draft may have, how a request changes them, and which fields a draft needs before it can be
 * sent.
 */
import { describe, expect, test } from 'bun:test'
import { changed, checkDraft, sendable } from '../../../../api/mail/approval/draftInput.ts'

type Content = Parameters<typeof checkDraft>[0]
const faultOf = (run: () => unknown) => {
  try {
    run()
    return 'read'
  } catch (error) {
    return (error as Error).message
  }
}
const fault = (content: Content) => faultOf(() => checkDraft(content))
const many = (count: number, name: string) =>
  Array.from({ length: count }, (_, n) => `${name}${n}@example.com`)

describe('a request can create or change a draft only with valid fields', () => {
  test.each<[name: string, content: Content]>([
    ['no field', {}],
    ['no recipient yet', { to: [], subject: 'S' }],
    ['fifty recipients', { to: many(20, 'a'), cc: many(20, 'b'), bcc: many(10, 'c') }],
    ['a reply to one', { inReplyTo: '<m@x>', text: 'T' }],
    ['a reply to all', { inReplyTo: '<m@x>', replyAll: true, headers: { 'X-Order': '1' } }],
  ])('the service accepts a draft with %s', (_, content) => expect(fault(content)).toBe('read'))

  test.each<[content: Content, message: string]>([
    [
      { to: many(20, 'a'), cc: many(20, 'b'), bcc: many(11, 'c') },
      'to, cc and bcc must name at most 50 recipients together',
    ],
    [{ cc: ['nobody'] }, 'cc[0] must be one email address'],
    [{ replyAll: false }, 'replyAll must stand beside inReplyTo'],
    [{ inReplyTo: '<m@x>', subject: 'S' }, 'subject must be absent beside inReplyTo'],
    [{ inReplyTo: '<m@x>', bcc: [] }, 'bcc must be absent beside inReplyTo'],
    [
      { inReplyTo: '<m@x>', unsubscribe: { mailto: 'leave@a.example' } },
      'unsubscribe must be absent beside inReplyTo',
    ],
    [{ sendAt: '2020-01-01T00:00:00Z' }, 'sendAt must lie in the future'],
    [{ unsubscribe: {} }, 'unsubscribe must hold url or mailto'],
    [
      { attachments: [{ filename: 'a', contentType: 'text', content: '' }] },
      'attachments[0].contentType must be a media type',
    ],
  ])('the service refuses a draft with the fields %j', (content, message) =>
    expect(fault(content)).toStartWith(message),
  )

  test('a draft with the field unsubscribe is refused if its own headers include List-Unsubscribe', () => {
    const headers = { 'List-Unsubscribe': '<https://a.example/u>' }
    expect(fault({ headers })).toBe('read')
    expect(fault({ headers, unsubscribe: { mailto: 'leave@a.example' } })).toContain(
      'List-Unsubscribe',
    )
  })
})

test('a change of a draft sets the given fields and removes the listed fields; a field in both lists is removed', () => {
  const content = { subject: 'Old', text: 'T', to: ['a@b.example'] }
  expect(changed(content, { subject: 'New', cc: [] })).toEqual({
    ...content,
    subject: 'New',
    cc: [],
  })
  expect(changed(content, { text: 'N', remove: ['text', 'to', 'bcc'] })).toEqual({ subject: 'Old' })
})

describe('a draft can be sent only if it has all necessary fields', () => {
  test('a draft can be sent only if it has a text, a recipient and a subject', () => {
    const whole = { to: ['a@b.example'], subject: '', text: '' }
    expect(sendable({ ...whole, cc: ['c@d.example'] })).toEqual({
      kind: 'send',
      body: { ...whole, cc: ['c@d.example'] },
    })
    for (const field of ['to', 'subject', 'text'] as const) {
      const { [field]: _, ...rest } = whole
      expect(faultOf(() => sendable(rest))).toBe(`${field} must be in the draft before it is sent`)
    }
    expect(faultOf(() => sendable({ ...whole, to: [] }))).toStartWith('to must be in the draft')
  })

  test('the draft of a reply can be sent if it has a text', () => {
    expect(sendable({ inReplyTo: '<m@x>', text: 'T', html: '<p>T</p>' })).toEqual({
      kind: 'reply',
      body: { messageId: '<m@x>', text: 'T', html: '<p>T</p>' },
    })
    expect(sendable({ inReplyTo: '<m@x>', text: 'T', replyAll: false }).body).toEqual({
      messageId: '<m@x>',
      text: 'T',
      replyAll: false,
    } as never)
    expect(faultOf(() => sendable({ inReplyTo: '<m@x>' }))).toStartWith('text must be in')
  })
})
