import { expect, test } from 'bun:test'
import { attachmentText, cut } from '../../../../api/mcp/tools/mailText.ts'

test('a text in a tool result is cut only if it is longer than its limit, and never within a surrogate pair', () => {
  expect(cut('four', 4)).toBe('four')
  expect(cut('fives', 4)).toBe('five… [cut]')
  expect(cut('abc\u{1f600}', 4)).toBe('abc… [cut]')
})

test.each([
  [
    'pending',
    null,
    'a.pdf (application/pdf): its text is still to be read. Ask again after some seconds.',
  ],
  ['none', null, 'a.pdf (application/pdf): no text.\nLeft out: images'],
  ['failed', 'encrypted', 'a.pdf (application/pdf): no text (encrypted).'],
])('the result for an attachment whose text is %s says so', (state, reason, text) => {
  const page = { filename: 'a.pdf', contentType: 'application/pdf', state, reason }
  expect(attachmentText({ ...page, chars: 0, omitted: ['images'], text: null } as never)).toBe(text)
})

test('the result for a part of an attachment’s text names the offset of the next part, if there is one', () => {
  const page = {
    filename: 'a.txt',
    contentType: 'text/plain',
    state: 'ready',
    chars: 9,
    omitted: [],
  }
  const shown = (part: object) => attachmentText({ ...page, ...part } as never)
  expect(shown({ text: 'five ', nextOffset: 5 })).toBe(
    'a.txt (text/plain), 9 characters\n\nfive \n\n(9 characters in all; go on at offset 5)',
  )
  expect(shown({ text: 'all of it' })).toBe('a.txt (text/plain), 9 characters\n\nall of it')
})
