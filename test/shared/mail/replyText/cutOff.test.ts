import { describe, expect, test } from 'bun:test'
import { beforeCutOff } from '../../../../shared/mail/replyText/cutOff.ts'

/** Reads a mail that ends with the given lines. The writer's own text and an empty line stand above these lines. */
const below = (...last: string[]) => beforeCutOff(['Yes, that works.', '', ...last], 2)
/** Reads a mail that ends with the given line. This line directly follows a line of the writer's own text. */
const behind = (above: string, last: string) => beforeCutOff([above, last], 1)

describe('an attribution ("Ann wrote:") that is cut off at the end of a mail is removed from the reply text', () => {
  test.each([
    ['with a weekday, a time and a name', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak'],
    ['with an open address', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@mail.exam'],
    ['with a closed address', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@mail.example>'],
    ['with a date of digits', 'Le 12/02/2025 à 09:37, Ann Now'],
    ['with a time of day in seconds', 'Am 2. März 2026 09:14:22 Ann Nowak'],
    ['with a weekday and no time', 'On Mon, 2 Mar 2026 at'],
    ['with the address before the date', 'Ann Nowak <ann@mail.example>, 2 Mar 2026, 09:14'],
    ['with the verb before the date', 'Ann Nowak <ann@mail.example> ezt írta (időpont: 2026. márc'],
    ['with a title', '----- Original Message -----'],
    ['with the verb in the middle', 'Am Mo., 2. März 2026 um 09:14 Uhr schrieb Ann Now'],
    ['with the verb at the end', 'On Mon, 2 Mar 2026 at 9:14 AM Ann Nowak wrote'],
  ])('a cut-off attribution %s is removed from the end of the mail: %s', (_name, line) =>
    expect(below(line)).toBe(''),
  )

  test('an attribution ("Ann wrote:") that is cut off at the end of a mail may cover up to three lines', () => {
    const lines = ['On Mon, 2 Mar 2026', 'at 9:14 Ann Nowak', '<ann@mail.exam']
    expect(below(...lines)).toBe('')
    expect(below('On', ...lines)).toBeUndefined()
  })

  test('an attribution ("Ann wrote:") that is cut off may directly follow the writer’s last line if that line ends a sentence', () => {
    expect(behind('Yes.', 'On Mon, 2 Mar 2026 at 9:14 Ann <ann@mail.exam')).toBe('')
    expect(behind('We met', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak')).toBeUndefined()
  })

  test('an attribution ("Ann wrote:") that is cut off may stand after the writer’s own text on the same line', () => {
    expect(behind('Hello.', 'Yes. On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@mail.exam')).toBe(
      'Yes.',
    )
  })

  test('a last line that ends with a time counts as an attribution ("Ann wrote:") only if the text above ends a sentence', () => {
    expect(below('On Mon, 2 Mar 2026 at 9:14')).toBe('')
    expect(beforeCutOff(['We can meet', '', 'On Mon, 2 Mar 2026 at 9:14'], 2)).toBeUndefined()
  })
})

describe('a last line that only looks like an attribution ("Ann wrote:") stays in the reply text', () => {
  test.each([
    [
      'with a date and a sentence',
      'On Mon, 2 Mar 2026 at 9:14 we got mail from <ann@mail.example>',
    ],
    ['with a full stop', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak.'],
    ['with a date and no time', 'On 2 March 2026 Ann Nowak'],
    ['with a time and no date', 'At 9:14 Ann Nowak'],
    ['with two addresses', 'Ann <ann@mail.example>, 2 Mar 2026, 09:14, Bo <bo@mail.example>'],
    ['with a title that no mail program writes', '--- Plan of the week'],
    ['with a name and an address alone', 'Ann Nowak <ann@mail.example> SALES'],
    ['with a name before a year and no verb', 'Ann Nowak <ann@mail.example> born in May 1990'],
    ['with a date behind many words', 'We would all like to meet on 2 Mar 2026 at 9:14 Ann Nowak'],
    ['that is quoted', '> On Mon, 2 Mar 2026 at 9:14 Ann Nowak'],
    ['that is empty', ''],
  ])('a last line %s stays in the reply text: %s', (_name, line) =>
    expect(below(line)).toBeUndefined(),
  )

  test('the last line is the writer’s own text if the line above announces it', () => {
    const line = 'Ann Nowak <ann@mail.example>, 2 Mar 2026, 09:14'
    for (const above of ['The last mails:', 'The last mails：', 'Bo,', '<bo@mail.example>']) {
      expect(behind(above, line)).toBeUndefined()
    }
    expect(behind('These are the last mails', line)).toBe('')
  })

  test('the last line with text is the writer’s own text if an empty line follows', () => {
    const views = ['Yes.', '', 'On Mon, 2 Mar 2026 at 9:14 Ann Nowak', '', '']
    expect(beforeCutOff(views, 2)).toBeUndefined()
  })

  test('a last line with a name and a date is the writer’s own text if it is longer than 160 characters', () => {
    const line = (length: number) => {
      const end = ' <ann@mail.example>, 2 Mar 2026, 09:14 '
      return `Ann${end}`.padEnd(length, 'x')
    }
    expect(below(line(160))).toBe('')
    expect(below(line(161))).toBeUndefined()
  })

  test('a last line is the writer’s own text if only punctuation stands before the attribution ("Ann wrote:")', () => {
    expect(
      behind('Hello.', '-- On Mon, 2 Mar 2026 at 9:14 Ann Nowak <ann@mail.exam'),
    ).toBeUndefined()
  })
})
