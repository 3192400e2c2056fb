/**
 * `bun run codes:fit` learns from mails with known codes how much each piece of evidence (for a one-time code) in
 * codeEvidence.ts counts, and writes the result to shared/mail/codes/codeTrees.ts. The command also prints how well the
 * decision trees judge an author's mails when the training leaves these mails out.
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
import { calibrationTable, shown } from './report.ts'
import { trainingMails } from './sets.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

const mails = trainingMails()
/**
 * Holds each candidate (a number or word that may be a one-time code) of the mails. Copies of mails without large or
 * bold text are used only for the training, and do not count in the printed rates.
 */
const examples: (Example & { value: string; isWithoutEmphasis: boolean })[] = []
for (const [n, { mail, weight }] of mails.entries()) {
  for (const { candidate, evidence } of judgedOf(partsOf(mail))) {
    const { value } = candidate
    const isCode = mail.codes.includes(value)
    const about = { isCode, mail: n, value }
    examples.push({ ...about, evidence, weight, isWithoutEmphasis: false })
    // Many products send HTML without large or bold text. Therefore the training also uses such a copy of each HTML
    // mail.
    const plain = evidence.filter((one) => !/^(?:large|bold):/.test(one))
    if (plain.length < evidence.length)
      examples.push({ ...about, evidence: plain, weight: weight / 2, isWithoutEmphasis: true })
  }
}
function partsOf({ subject, text, html }: CodeMail) {
  const shown = html === undefined ? null : visibleHtml(html, 1_000_000).html
  const seen = shown === null ? '' : readableText(htmlToText(shown))
  return codeParts({ subject, text: text ?? seen, shown, seen })
}

/**
 * Counts the possible codes in the mails that the training left out, grouped by the confidence that the model gives to
 * each possible code.
 */
const calibration: Calibration = new Map()
const count = () => ({ right: 0, all: 0 })
const [precision, recall] = [count(), count()]
for (const author of new Set(mails.map((one) => one.author))) {
  if (author === undefined) continue
  const own = examples.filter(
    ({ mail, isWithoutEmphasis }) => !isWithoutEmphasis && mails[mail]!.author === author,
  )
  const trees = learnTrees(examples.filter(({ mail }) => mails[mail]!.author !== author))
  const found = new Map<string, boolean>()
  for (const { evidence, isCode, mail, value } of own) {
    const probability = likelihood(trees, new Set(evidence))
    const confidence = Math.round(100 * probability) / 100
    const { right, all } = calibration.get(confidence) ?? count()
    calibration.set(confidence, { right: right + (isCode ? 1 : 0), all: all + 1 })
    if (probability >= 0.5) found.set(`${mail} ${value}`, isCode)
  }
  const right = [...found.values()].filter(Boolean).length
  precision.right += right
  precision.all += found.size
  recall.right += right
  for (const one of mails) if (one.author === author) recall.all += one.mail.codes.length
}
say(`${examples.filter(({ isWithoutEmphasis }) => !isWithoutEmphasis).length} candidates`)
say('mails of each author, judged by trees that did not learn from this author:')
say(`  ${shown('precision', precision)}`)
say(`  ${shown('recall', recall)}`)
for (const line of calibrationTable(calibration)) say(`  ${line}`)

const { start, trees } = learnTrees(examples)
writeFileSync(
  'shared/mail/codes/codeTrees.ts',
  `// biome-ignore-all lint/suspicious/noApproximativeNumericConstant: learned weights
import type { CodeTree } from './likelihood.ts'

/**
 * Holds the model that finds one-time codes. \`start\` is the log-odds of a candidate without evidence, and each decision
 * tree adds to the log-odds. \`bun run codes:fit\` learned the model.
 */
export const CODE_TREES: { start: number; trees: readonly CodeTree[] } = {
  start: ${start},
  // biome-ignore format: one tree on each line
  trees: [
${trees.map((tree) => `    ${JSON.stringify(tree)},`).join('\n')}
  ],
}
`,
)
