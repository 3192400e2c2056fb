import { expect, test } from 'bun:test'
import { searchVector } from '../../../shared/mail/searchTerms.ts'

const NOTHING = { subject: '', from: [], to: [] }

test('no text makes a vector larger than Postgres takes', () => {
  const words = Array.from({ length: 16_000 }, (_, n) => n.toString(36))
  for (const text of [
    // One character that compatibility makes into eighteen.
    words.map((word) => `${word}\ufdfa\ufdfa\ufdfa`).join(' '),
    words.map((word) => `${word}${'ж'.repeat(60)}`).join(' '),
    words.map((word) => `${word}${'𝔘'.repeat(60)}`).join(' '),
  ]) {
    const vector = searchVector('prj_1', { ...NOTHING, text })
    // The text form is longer than what is stored: a mark, quotes and decimal positions beside each term.
    expect(Buffer.byteLength(vector)).toBeLessThan(1024 * 1024)
  }
})
