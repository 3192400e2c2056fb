/**
 * `bun run codes:fit`: learns the meaning of the evidence of codeEvidence.ts from mails whose codes are known, by boosted trees, and writes
 * shared/mail/codes/codeTrees.ts. It prints how well the trees of nine tenths of the mails judge the last tenth.
 */
import { writeFileSync } from 'node:fs'
import { codeParts } from '../../shared/mail/codes/codeParts.ts'
import { judgedOf } from '../../shared/mail/codes/codes.ts'
import { likelihood } from '../../shared/mail/codes/likelihood.ts'
import { htmlToText } from '../../shared/mail/visibleText/htmlToText.ts'
import { readableText } from '../../shared/mail/visibleText/readableText.ts'
import { visibleHtml } from '../../shared/mail/visibleText/visibleHtml.ts'
import type { CodeMail } from '../shared/mail/codes/codeMails/build.ts'
import type { Calibration } from '../shared/mail/codes/codeMails/score.ts'
import { type Example, learnTrees } from './boost.ts'
import { calibrationTable } from './report.ts'
import { trainingMails } from './sets.ts'

const FOLDS = 10

const say = (line: string) => process.stdout.write(`${line}\n`)

const examples: Example[] = []
for (const [n, { mail, weight }] of trainingMails().entries()) {
  for (const { candidate, evidence } of judgedOf(partsOf(mail))) {
    examples.push({ evidence, isCode: mail.codes.includes(candidate.value), weight, mail: n })
  }
}
function partsOf({ subject, text, html }: CodeMail) {
  const shown = html === undefined ? null : visibleHtml(html, 1_000_000).html
  const seen = shown === null ? '' : readableText(htmlToText(shown))
  return codeParts({ subject, text: text ?? seen, shown, seen })
}

/** Counts held-out codes of strangers' mails by their confidence. */
const calibration: Calibration = new Map()
const count = () => ({ wrong: 0, all: 0 })
const aside = { strangers: count(), own: count() }
for (let fold = 0; fold < FOLDS; fold++) {
  const isAside = ({ mail }: Example) => mail % FOLDS === fold
  const trees = learnTrees(examples.filter((one) => !isAside(one)))
  for (const one of examples.filter(isAside)) {
    const probability = likelihood(trees, new Set(one.evidence))
    const tally = one.weight >= 1 ? aside.strangers : aside.own
    tally.all++
    if (tally === aside.strangers) {
      const confidence = Math.round(100 * probability) / 100
      const { right, all } = calibration.get(confidence) ?? { right: 0, all: 0 }
      calibration.set(confidence, { right: right + (one.isCode ? 1 : 0), all: all + 1 })
    }
    if (probability >= 0.5 !== one.isCode) tally.wrong++
  }
}
say(`${examples.length} candidates`)
for (const line of calibrationTable(calibration)) say(`  ${line}`)
say(`candidates left aside that are judged wrong: ${JSON.stringify(aside)}`)

const { start, trees } = learnTrees(examples)
writeFileSync(
  'shared/mail/codes/codeTrees.ts',
  `import type { CodeTree } from './likelihood.ts'

/** The log-odds of a candidate without evidence, and the trees that add to it, as \`bun run codes:fit\` learned them. */
export const CODE_TREES: { start: number; trees: readonly CodeTree[] } = {
  start: ${start},
  // biome-ignore format: a tree a line
  trees: [
${trees.map((tree) => `    ${JSON.stringify(tree)},`).join('\n')}
  ],
}
`,
)
