import { expect, test } from 'bun:test'
import {
  alternativeMessageId,
  ancestors,
  baseSubject,
  isMessageId,
  parseReferences,
  replyReferences,
  replySubject,
} from '../../../shared/mail/threading.ts'

test('a Message-ID in a form that real mail uses is accepted, and a malformed Message-ID is refused', () => {
  for (const id of [
    '<a@b>',
    '<CAF+x/y%z=1@mail.example.com>',
    '<"a b"@c.test>',
    '<ü@x.test>',
    '<a@[1.2.3.4]>',
    `<${'x'.repeat(994)}@b>`,
  ]) {
    expect([id, isMessageId(id)]).toEqual([id, true])
  }
  for (const id of [
    '',
    'a@b',
    '<a>',
    '<@b>',
    '<a@>',
    '<a b@c>',
    '<a@b@c>',
    '<a@b',
    '<a@b>\n',
    '<a\r\n@b>',
    `<${'x'.repeat(995)}@b>`,
  ]) {
    expect([id, isMessageId(id)]).toEqual([id, false])
  }
})

test('the References header is read despite other text between the Message-IDs, and at most 200 of them are kept', () => {
  expect(parseReferences('<a@x> <b@x>,<c@x><d@x>\r\n\t<e@x> junk <not an id> <a@x>')).toEqual([
    '<a@x>',
    '<b@x>',
    '<c@x>',
    '<d@x>',
    '<e@x>',
  ])
  expect(parseReferences(undefined)).toEqual([])
  const long = (n: number) => `<${n}${'x'.repeat(900)}@x>`
  const kept = parseReferences(Array.from({ length: 100 }, (_, n) => long(n)).join(' '))
  expect(kept).toEqual([long(0), ...Array.from({ length: 16 }, (_, n) => long(84 + n))])
  const many = parseReferences(Array.from({ length: 500 }, (_, n) => `<m${n}@x>`).join(' '))
  expect([many.length, many[0], many[1], many.at(-1)]).toEqual([
    200,
    '<m0@x>',
    '<m301@x>',
    '<m499@x>',
  ])
})

test('the list of a message’s ancestors in its thread begins with the nearest one, and does not contain the message itself', () => {
  expect(
    ancestors({
      messageId: '<me@x>',
      inReplyTo: ['<p@x>'],
      references: ['<r@x>', '<me@x>', '<p@x>'],
    }),
  ).toEqual(['<p@x>', '<r@x>'])
})

test('the References header of a reply lists the earlier messages in the form that RFC 5322 §3.6.4 requires', () => {
  expect(
    replyReferences({ messageId: '<c@x>', inReplyTo: ['<b@x>'], references: ['<a@x>', '<b@x>'] }),
  ).toEqual(['<a@x>', '<b@x>', '<c@x>'])
  expect(replyReferences({ messageId: '<c@x>', inReplyTo: ['<b@x>'], references: [] })).toEqual([
    '<b@x>',
    '<c@x>',
  ])
  expect(
    replyReferences({ messageId: '<c@x>', inReplyTo: ['<a@x>', '<b@x>'], references: [] }),
  ).toEqual(['<c@x>'])
})

test('at most 20 reply prefixes of a subject are removed', () => {
  expect(baseSubject(`${'Re: '.repeat(20)}Offer`)).toEqual({ base: 'offer', isReply: true })
  expect(baseSubject(`${'Re: '.repeat(21)}Offer`)).toEqual({ base: 're: offer', isReply: true })
})

test('the subject of a reply has exactly one Re:', () => {
  for (const [subject, wanted] of [
    ['Offer', 'Re: Offer'],
    ['Re: Offer', 'Re: Offer'],
    ['RE: re: Re : Offer', 'Re: Offer'],
    ['Re[2]: Offer', 'Re: Offer'],
    ['Regarding: Offer', 'Re: Regarding: Offer'],
    ['', 'Re:'],
  ] as const) {
    expect(replySubject(subject)).toBe(wanted)
  }
})

test('if a Message-ID is already used, the new Message-ID that the service makes instead has the same domain', () => {
  expect(alternativeMessageId('<a.b@c.test>', 2)).toBe('<a.b.2@c.test>')
})
