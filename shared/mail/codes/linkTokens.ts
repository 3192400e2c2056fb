/** Finds long codes that a mail shows beside a link with the same letters, or after the words for a one-time code. */
import type { CodeLine } from './codeEvidence.ts'
import { type Candidate, standsAlone } from './codeShapes.ts'

/**
 * Matches the long random part of a URL. A mail may show the same letters as a code for a reader who cannot open the
 * link, as in `Activation code: q7Lw2ZrT9xKcM4vB8nYsE1hJdP6gUf`.
 */
const TOKEN_IN_URL = /[=/]([A-Za-z\d]{11,64})(?![\w%-])/g
const SHOWN_TOKEN = /(?<![\w=/&%-])(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z\d]{11,64}(?![\w-])/g

/** Returns the long random parts of the URLs in texts. The caller must limit the length of the texts. */
export const tokensInLinks = (texts: readonly string[]): ReadonlySet<string> =>
  new Set(texts.flatMap((text) => [...text.matchAll(TOKEN_IN_URL)].map(([, value]) => value!)))

/** Sets the maximum number of characters between the word "code" and the long code after it. */
const TOKEN_GAP_CHARS = 40

/** Matches a long code of capital letters, small letters and digits, which a reader copies into a form. */
const LONG_CODE = /^(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[A-Za-z\d]{13,32}$/

/**
 * Returns the long random words that a line of the mail shows as codes. The words directly before such a word must name
 * a code and no other number. If the long word is alone on its line, the words on the line above must name the code.
 * For a long word that is no part of a link's URL, the rule is stricter. It must follow a colon, and the words must
 * name a one-time code and not only a `code`.
 * @param isAnnounced tells that the subject announces a one-time code. A long word alone on its line then needs no colon.
 */
export function shownTokens(
  lines: readonly CodeLine[],
  at: number,
  { tokens, isAnnounced }: { tokens: ReadonlySet<string>; isAnnounced: boolean },
): (Candidate & { isToken: true })[] {
  const { text } = lines[at]!
  return [...text.matchAll(SHOWN_TOKEN)]
    .filter(([value]) => tokens.has(value) || LONG_CODE.test(value))
    .map(({ 0: value, index: start }) => ({ value, start, end: start + value.length }))
    .filter((place) => {
      const named = standsAlone(text, place)
        ? lines[at - 1]?.labels
        : lines[at]!.labels.filter(
            ({ end }) => end <= place.start && isPhrase(text.slice(end, place.start)),
          )
      const last = named?.findLast(({ kind }) => kind !== 'access')
      if (last?.kind === 'certain' && /[:：] ?$/.test(text.slice(0, place.start))) return true
      const isKnown = tokens.has(place.value) || (isAnnounced && standsAlone(text, place))
      return isKnown && (last?.kind === 'certain' || last?.kind === 'code')
    })
    .map((place) => ({
      ...place,
      ...{ kind: 'alphanumeric' as const, isToken: true as const, isWeak: true },
      ...{ isYear: false, isKey: false, isPlace: false },
    }))
}

const isPhrase = (words: string): boolean =>
  words.length <= TOKEN_GAP_CHARS && !/[.!?;] /.test(words)
