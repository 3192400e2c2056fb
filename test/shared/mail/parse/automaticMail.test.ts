import { expect, test } from 'bun:test'
import { automaticLabels } from '../../../../shared/mail/parse/automaticMail.ts'

const CASES: [headers: string, labels: string[]][] = [
  ['', []],
  ['auto-submitted: auto-replied', ['auto-reply']],
  ['auto-submitted: auto-generated; owner-email="a@b.c"', ['auto-reply']],
  ['auto-submitted: no', []],
  ['auto-submitted: NO', []],
  ['x-autoreply: yes', ['auto-reply']],
  ['x-autorespond: Out of office', ['auto-reply']],
  ['x-autoreply: no', []],
  ['precedence: auto_reply', ['auto-reply']],
  ['list-id: Dev <dev.example.com>', ['list']],
  ['list-post: <mailto:dev@example.com>', ['list']],
  ['precedence: list', ['list']],
  ['precedence: bulk', []],
  ['precedence: bulk\nlist-unsubscribe: <https://example.com/u>', ['list']],
  ['auto-submitted: auto-replied\nlist-id: <a.b>', ['auto-reply', 'list']],
  ['list-unsubscribe: <https://example.com/u>', []],
]

for (const [text, labels] of CASES) {
  test(`a mail with the header "${text.replace('\n', ' + ')}" gets the labels [${labels.join(', ')}]`, () => {
    const headers = text.split('\n').flatMap((line) => {
      const [key, value] = line.split(': ')
      return value === undefined ? [] : [{ key: key!, value }]
    })
    expect(automaticLabels(headers)).toEqual(labels)
  })
}
