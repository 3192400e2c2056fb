/** Measures how well the service finds codes and links in mails that imitate real services. */
import { expect, test } from 'bun:test'
import { VOICES } from './codeMails/build.ts'
import { CORPUS } from './codeMails/corpus.ts'
import { percent, score } from './codeMails/score.ts'

test('the test mails for authors of the extraction rules and the reserved test mails are many, in 22 languages, with and without codes', () => {
  for (const mails of [CORPUS.open, CORPUS.aside]) {
    expect(mails.length).toBeGreaterThanOrEqual(200)
    expect(mails.filter(({ codes }) => codes.length > 0).length).toBeGreaterThanOrEqual(90)
    expect(mails.filter(({ codes }) => codes.length === 0).length).toBeGreaterThanOrEqual(80)
    expect(mails.filter(({ html }) => html !== undefined).length).toBeGreaterThanOrEqual(80)
    expect(mails.filter(({ text }) => text !== undefined).length).toBeGreaterThanOrEqual(80)
  }
  expect(new Set(VOICES.map(({ language }) => language)).size).toBe(22)
  const all = [...CORPUS.open, ...CORPUS.aside]
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
})

test.each([
  ['open', CORPUS.open],
  ['aside', CORPUS.aside],
])(
  'in the test mails of the set "%s", the service finds codes and links with a precision of 97 %% and a recall of 95 %%',
  async (_, mails) => {
    const { codes, links } = await score(mails)
    for (const { precision, recall } of [codes, links]) {
      expect(percent(precision)).toBeGreaterThanOrEqual(97)
      expect(percent(recall)).toBeGreaterThanOrEqual(95)
    }
  },
)
