/** Codes and links in mails as services write them. */
import { expect, test } from 'bun:test'
import { VOICES } from './codeMails/build.ts'
import { CORPUS } from './codeMails/corpus.ts'

test('half of the mails is aside, in every language, with and without codes', () => {
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
