import { expect, test } from 'bun:test'
import { mayBeCut, messageWithin } from '../../../shared/events/messageWithin.ts'

const address = (n: number) => `person${n}@example.com`
const message = {
  ...{ messageId: '<a@example.com>', threadId: 'thr_1', inboxId: 'agent@mail.test' },
  from: [address(0)],
  to: Array.from({ length: 100 }, (_, n) => address(n)),
  subject: 'Subject '.repeat(100),
  labels: ['received'],
}
const bytesOf = ({ from, to, subject }: typeof message) =>
  Buffer.byteLength(JSON.stringify([from, to, subject]))

test('an event that is shorter than the byte limit holds the whole sender, recipients and subject', () => {
  expect(messageWithin(message, 4_000)).toBe(message)
  expect(mayBeCut(message)).toBe(false)
})

test('the shortened form of a too long event holds the sender, the first recipients, and the start of the subject', () => {
  const cut = messageWithin(message, 600)
  expect(cut).toEqual({
    ...message,
    to: message.to.slice(0, cut.to.length),
    subject: `${message.subject.slice(0, cut.subject.length - 1)}…`,
  })
  expect(cut.to.length).toBeGreaterThan(5)
  expect(cut.subject.length).toBeGreaterThan(100)
  expect(mayBeCut(cut)).toBe(true)
})

test.each([0, 10, 144, 500, 2_000])(
  'the shortened form of a too long event stays within %d bytes',
  (maxBytes) => {
    for (const letter of ['a', 'é', '漢', '😀']) {
      const long = {
        ...message,
        from: Array(50).fill(`${letter}@b.example`),
        subject: letter.repeat(4_000),
      }
      const cut = messageWithin(long, maxBytes)
      // Besides the texts of the event, a shortened event needs some bytes for its quotes, its brackets and the note that
      // it was shortened. Therefore the test allows 15 bytes more than the limit.
      expect(bytesOf(cut)).toBeLessThanOrEqual(maxBytes + 15)
      expect(cut.subject).toMatch(new RegExp(`^(?:${letter})*…$`, 'u'))
    }
  },
)

test('the shortened form of an event keeps a sender whose address takes exactly half of the event’s byte limit', () => {
  // In an event, each address takes four bytes besides its own characters, so this address takes 24 bytes, which is
  // half of 48.
  const from = ['a'.repeat(20)]
  expect(messageWithin({ ...message, from }, 48).from).toEqual(from)
  expect(messageWithin({ ...message, from }, 47).from).toEqual([])
})
