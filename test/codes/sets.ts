/** Reads sets of mails whose codes and links are known. */
import { readFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import type { CodeMail } from '../shared/mail/codes/codeMails/build.ts'
import { CORPUS } from '../shared/mail/codes/codeMails/corpus.ts'
import { hardNegatives, mixtures } from '../shared/mail/codes/codeMails/hardNegatives.ts'
import { LATER } from '../shared/mail/codes/codeMails/later.ts'

/** Reads a file with a set of test mails, which holds one mail a line as JSON. */
export function readSet(path: string): CodeMail[] {
  const bytes = readFileSync(path)
  const text = (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8')
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

/**
 * Lists the files with sets of test mails whose results have been published. A new set is added after its first result.
 */
export const openSets = (): string[] =>
  [...new Bun.Glob('test/fixtures/codes/*.jsonl.gz').scanSync()].toSorted()

/**
 * Returns the mails from which the weights are learned. The half that codeMails/corpus.ts keeps aside is not
 * included. `author` names the set of a stranger.
 */
export const trainingMails = (): { mail: CodeMail; weight: number; author?: string }[] => [
  ...CORPUS.open.map((mail) => ({ mail, weight: OWN_WEIGHT })),
  ...[
    ...hardNegatives(300, { aside: false, seed: 1 }),
    ...mixtures(300, { aside: false, seed: 1 }),
  ].map((mail) => ({ mail, weight: OWN_WEIGHT })),
  ...LATER.map(([subject, text, codes], n) => ({
    mail: { id: `later-${n}`, subject, text, codes, links: {} },
    weight: SHORT_WEIGHT,
  })),
  ...openSets().flatMap((author) => readSet(author).map((mail) => ({ mail, weight: 1, author }))),
]

/**
 * Is the weight of mails that a single author made from templates. The weight is lower than the weight of mails of
 * strangers.
 */
const OWN_WEIGHT = 0.2
/** Sets the weight of mails of one line. Such mails are clear, so each mail must be judged right. */
const SHORT_WEIGHT = 3
