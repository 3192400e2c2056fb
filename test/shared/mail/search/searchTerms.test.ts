import { expect, test } from 'bun:test'
import { searchVector, termsOf } from '../../../../shared/mail/search/searchTerms.ts'

const NOTHING = { subject: '', from: [], to: [] }

test('the search terms of any text fit into a PostgreSQL tsvector', () => {
  const words = Array.from({ length: 16_000 }, (_, n) => n.toString(36))
  for (const text of [
    // The normalization NFKD turns the single character U+FDFA into eighteen characters, so the words of this text
    // become much longer.
    words.map((word) => `${word}\ufdfa\ufdfa\ufdfa`).join(' '),
    words.map((word) => `${word}${'ж'.repeat(60)}`).join(' '),
    words.map((word) => `${word}${'𝔘'.repeat(60)}`).join(' '),
  ]) {
    const vector = searchVector('prj_1', { ...NOTHING, text })
    // The test measures the text form of a search vector, because it is longer than the stored form: each term has a
    // prefix, quotes and decimal positions.
    expect(Buffer.byteLength(vector)).toBeLessThan(1024 * 1024)
  }
})

test.each(['ガイドブック', 'パンフレット', '한글 문서', 'Übergröße', 'ไฟล์'])(
  'the file name %s gives the same search terms in the composed and the decomposed Unicode form, which file names on a Mac have',
  (text) => {
    const [composed, decomposed] = [text.normalize('NFC'), text.normalize('NFD')]
    const terms = (given: string) => termsOf(given).map(({ term }) => term)
    expect(terms(decomposed)).toEqual(terms(composed))
    const vector = (given: string) => searchVector('prj_1', { ...NOTHING, text: given })
    expect(vector(decomposed)).toBe(vector(composed))
    expect(termsOf(decomposed).at(-1)!.end).toBe(decomposed.length)
  },
)
