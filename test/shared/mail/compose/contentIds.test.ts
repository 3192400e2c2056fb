/** Tests that all mail programs find the same attachment by its Content-ID. */
import { expect, test } from 'bun:test'
import { parseContentId } from '../../../../shared/mail/compose/sentAttachment.ts'

test('a Content-ID is refused if mail programs could decode it to another text', () => {
  for (const text of [
    'a&#98;',
    'a%62',
    'a#b',
    'a;b',
    'a&b',
    '=?utf-8?Q?a?=',
    '<=?utf-8?B?YQ==?=@x>',
  ])
    expect([text, parseContentId(text)]).toEqual([text, null])
  for (const text of ['a=b', 'a?b', "it's", 'a+b@c.example', '$a*{b}|~'])
    expect([text, parseContentId(text)]).toEqual([text, text])
})
