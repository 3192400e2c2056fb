/** Reads sets of mails whose one-time codes and links are known. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { plainForm } from '../../shared/mail/codes/codeShapes.ts'
import type { CodeMail } from '../shared/mail/codes/codeMails/build.ts'
import { CORPUS } from '../shared/mail/codes/codeMails/corpus.ts'
import { hardNegatives, mixtures } from '../shared/mail/codes/codeMails/hardNegatives.ts'
import { LATER } from '../shared/mail/codes/codeMails/later.ts'

/**
 * Reads a file with a set of test mails, one mail as JSON in each line. The digits of a code are converted to ASCII
 * digits, because the API returns the codes of every script in ASCII digits.
 */
export function readSet(path: string): CodeMail[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as CodeMail)
    .map((mail) => ({ ...mail, codes: mail.codes.map(plainForm) }))
}

/**
 * Lists the files of the sets of test mails whose results have been published. A new set is added to this list after
 * its first result.
 */
export const openSets = (): string[] =>
  [...new Bun.Glob('test/fixtures/codes/*.jsonl.gz').scanSync()].toSorted()

/**
 * Returns the mails from which the weights of the model are learned, without the mails that codeMails/corpus.ts
 * reserves for tests. If a person outside of the project wrote a set of mails, `author` names the set.
 */
export const trainingMails = (): { mail: CodeMail; weight: number; author?: string }[] => [
  ...CORPUS.open.map((mail) => ({ mail, weight: OWN_WEIGHT })),
  ...hardNegatives(300, { aside: false, seed: 1 }).map((mail) => ({ mail, weight: HARD_WEIGHT })),
  ...mixtures(300, { aside: false, seed: 1 }).map((mail) => ({ mail, weight: OWN_WEIGHT })),
  ...LATER.map(([subject, text, codes], n) => ({
    mail: { id: `later-${n}`, subject, text, codes, links: {} },
    weight: SHORT_WEIGHT,
  })),
  ...openSets().flatMap((author) => readSet(author).map((mail) => ({ mail, weight: 1, author }))),
]

/**
 * Sets the weight in the training of mails that were made from one author's templates. This weight is lower than the
 * weight of mails that other people wrote.
 */
const OWN_WEIGHT = 0.2
/**
 * Holds the weight of mails with numbers but without a code. Real mails without a code are rare in the sets of other
 * authors, so these mails count more than other mails from templates.
 */
const HARD_WEIGHT = 0.6
/**
 * Sets the weight of mails that consist of one line. Such a mail can be understood in only one way, so the model must
 * judge each of them correctly.
 */
const SHORT_WEIGHT = 3
