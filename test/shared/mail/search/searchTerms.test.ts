import { expect, test } from 'bun:test'
import { searchVector } from '../../../../shared/mail/search/searchTerms.ts'

const NOTHING = { subject: '', from: [], to: [] }

test('the search vector of any text fits into a tsvector of PostgreSQL', () => {
  const words = Array.from({ length: 16_000 }, (_, n) => n.toString(36))
  for (const text of [
    // The normalization NFKD turns the character U+FDFA into eighteen characters.
    words.map((word) => `${word}\ufdfa\ufdfa\ufdfa`).join(' '),
    words.map((word) => `${word}${'ж'.repeat(60)}`).join(' '),
    words.map((word) => `${word}${'𝔘'.repeat(60)}`).join(' '),
  ]) {
    const vector = searchVector('prj_1', { ...NOTHING, text })
    // The text form of a search vector is longer than its stored form, because each term has a prefix, quotes and
    // decimal positions.
    expect(Buffer.byteLength(vector)).toBeLessThan(1024 * 1024)
  }
})
