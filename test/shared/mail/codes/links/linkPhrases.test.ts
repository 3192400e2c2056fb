/**
 * Tests the phrases that announce the purpose of a link in 48 languages (test/fixtures/codes/linkPhrases.txt,
 * linkRequests.txt), and the phrases that an outside author wrote in 130 languages (linkWorld.txt).
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { purposeOfText } from '../../../../../shared/mail/codes/links/linkWords.ts'

/** Names, for each column of the file linkPhrases.txt, the purpose of the phrases in this column. */
const PURPOSES = [
  ...['unsubscribe', 'unsubscribe', 'unsubscribe'],
  ...['verify', 'sign-in', 'sign-in', 'reset'],
]
const PHRASES = readFileSync('test/fixtures/codes/linkPhrases.txt', 'utf8')
  .trim()
  .split('\n')
  .map((line) => line.split('|'))

test.each(PHRASES.map(([language, ...phrases]) => [language!, phrases] as const))(
  'in the language %s, each phrase of a link has its purpose',
  (_language, phrases) => {
    expect(phrases.map(purposeOfText)).toEqual(PURPOSES as never)
  },
)

test.each(
  readFileSync('test/fixtures/codes/linkRequests.txt', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('|') as [string, string]),
)('a link has the purpose %s by its words "%s"', (purpose, words) => {
  expect(String(purposeOfText(words))).toBe(purpose)
})

const WORLD = Map.groupBy(
  readFileSync('test/fixtures/codes/linkWorld.txt', 'utf8')
    .trim()
    .split('\n')
    .map((line) => line.split('|') as [string, string, string]),
  ([language]) => language,
)

test.each([...WORLD.entries()])(
  'in the language %s, the sentences and buttons of an outsider have their purpose',
  (_language, lines) => {
    const found = lines.map(([, , text]) => `${purposeOfText(text) ?? 'other'}: ${text}`)
    const wanted = lines.map(
      ([, purpose, text]) => `${purpose === 'none' ? 'other' : purpose}: ${text}`,
    )
    expect(found).toEqual(wanted)
  },
)

describe('a text that mentions a purpose only by chance does not give a link this purpose', () => {
  test.each([
    'Registration completed',
    'Die Registrierung ist abgeschlossen',
    'Регистрация завершена',
    '会員登録が完了しました',
    '가입이 완료되었습니다',
    'We sent you an e-mail',
    'Settings',
    'Stäng av',
    'Отключить',
    'Deauthorize unrecognized devices',
  ])('a text that says "%s" gives its link no purpose', (text) => {
    expect(purposeOfText(text)).toBeUndefined()
  })
})

test('two words that are far from each other do not together give a link its purpose', () => {
  const far = (words: number) => `notifications ${'and '.repeat(words)}preferences`
  expect(purposeOfText(far(10))).toBe('unsubscribe')
  expect(purposeOfText(far(18))).toBeUndefined()
})

test('a link about a password has the purpose `reset`, and a link about a confirmation has `verify`, even if the link also mentions mail settings', () => {
  expect(purposeOfText('Neues Passwort für die Einstellungen deiner Mail')).toBe('reset')
  expect(purposeOfText('Bestätige die Einstellungen deiner Mail')).toBe('verify')
})
