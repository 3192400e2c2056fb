/** Tests the words for a one-time code in 98 languages (test/fixtures/codes/codeLabels.txt). */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { labelsOf } from '../../../../shared/mail/codes/codeWords.ts'

const LABELS = readFileSync('test/fixtures/codes/codeLabels.txt', 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split('|'))

/** Returns the kind of the last label (word that names a number) before a number. */
const kindOf = (words: string) => labelsOf(words).findLast(({ kind }) => kind !== 'access')?.kind

test.each(LABELS.map(([language, ...labels]) => [language!, labels] as const))(
  'in the language %s, each name of a one-time code counts as certain',
  (_language, labels) => {
    expect(labels.filter((label) => kindOf(`${label}: `) !== 'certain')).toEqual([])
  },
)

test.each([
  'Code of your parcel',
  'Código de cita',
  'Mã giao dịch',
  'Код товару',
  'Promo code',
  'The code for your order',
])('the words `%s` do not certainly name a one-time code', (words) => {
  expect(kindOf(`${words}: `)).not.toBe('certain')
})
