/**
 * `bun run codes:fit`: learns the weights of codeEvidence.ts from mails whose codes are known, by logistic regression, and writes
 * shared/mail/codes/codeWeights.ts. It prints how well the weights of nine tenths of the mails judge the last tenth.
 */
import { writeFileSync } from 'node:fs'
import { codeParts } from '../../shared/mail/codes/codeParts.ts'
import { judgedOf } from '../../shared/mail/codes/codes.ts'
import { htmlToText } from '../../shared/mail/visibleText/htmlToText.ts'
import { readableText } from '../../shared/mail/visibleText/readableText.ts'
import { visibleHtml } from '../../shared/mail/visibleText/visibleHtml.ts'
import type { CodeMail } from '../shared/mail/codes/codeMails/build.ts'
import type { Calibration } from '../shared/mail/codes/codeMails/score.ts'
import { calibrationTable } from './report.ts'
import { trainingMails } from './sets.ts'

/** A candidate: its evidence, whether it is a code, and how much its mail counts. */
type Example = { evidence: string[]; isCode: boolean; weight: number; mail: number }

const ROUNDS = 1_500
const STEP = 0.5
/** It holds a weight small that few mails support. */
const PENALTY = 0.8
/** Evidence in fewer mails says nothing. */
const MAILS_MIN = 3
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

const mailsOf = new Map<string, Set<number>>()
for (const { evidence, mail } of examples) {
  for (const name of evidence) mailsOf.set(name, (mailsOf.get(name) ?? new Set()).add(mail))
}
const names = [...mailsOf.keys()].filter((name) => mailsOf.get(name)!.size >= MAILS_MIN).toSorted()

/** Held-out codes of strangers' mails by their confidence. */
const calibration: Calibration = new Map()
const count = () => ({ wrong: 0, all: 0 })
const aside = { strangers: count(), own: count() }
for (let fold = 0; fold < FOLDS; fold++) {
  const isAside = ({ mail }: Example) => mail % FOLDS === fold
  const weights = fit(examples.filter((one) => !isAside(one)))
  for (const one of examples.filter(isAside)) {
    const tally = one.weight === 1 ? aside.strangers : aside.own
    tally.all++
    if (tally === aside.strangers) {
      const confidence = Math.round(100 * probability(weights, one)) / 100
      const { right, all } = calibration.get(confidence) ?? { right: 0, all: 0 }
      calibration.set(confidence, { right: right + (one.isCode ? 1 : 0), all: all + 1 })
    }
    if (probability(weights, one) >= 0.5 !== one.isCode) tally.wrong++
  }
}
say(`${examples.length} candidates, ${names.length} kinds of evidence`)
for (const line of calibrationTable(calibration)) say(`  ${line}`)
say(`candidates left aside that are judged wrong: ${JSON.stringify(aside)}`)

const weights = fit(examples)
const lines = ['all', ...names]
  .map((name): [string, number] => [name, Math.round(100 * weights.get(name)!) / 100])
  .filter(([, weight]) => weight !== 0)
  .map(([name, weight]) => `  ${/^\w+$/.test(name) ? name : `'${name}'`}: ${weight},`)
writeFileSync(
  'shared/mail/codes/codeWeights.ts',
  `/** The weight of each evidence of codeEvidence.ts, as \`bun run codes:fit\` learned it. \`all\` counts for each candidate. */\nexport const CODE_WEIGHTS: Readonly<Record<string, number>> = {\n${lines.join('\n')}\n}\n`,
)

function probability(weights: ReadonlyMap<string, number>, { evidence }: Example): number {
  let sum = weights.get('all')!
  for (const name of evidence) sum += weights.get(name) ?? 0
  return 1 / (1 + Math.exp(-sum))
}

/** Gradient descent with a step for each weight (Adagrad). */
function fit(own: readonly Example[]): Map<string, number> {
  const weights = new Map(['all', ...names].map((name) => [name, 0]))
  const squares = new Map([...weights.keys()].map((name) => [name, 1e-6]))
  const known = own.map((one) => ({
    ...one,
    evidence: ['all', ...one.evidence.filter((name) => weights.has(name))],
  }))
  for (let round = 0; round < ROUNDS; round++) {
    const slopes = new Map(
      [...weights].map(([name, weight]) => [name, name === 'all' ? 0 : PENALTY * weight]),
    )
    for (const one of known) {
      let sum = 0
      for (const name of one.evidence) sum += weights.get(name)!
      const error = (1 / (1 + Math.exp(-sum)) - (one.isCode ? 1 : 0)) * one.weight
      for (const name of one.evidence) slopes.set(name, slopes.get(name)! + error)
    }
    for (const [name, slope] of slopes) {
      squares.set(name, squares.get(name)! + slope ** 2)
      weights.set(name, weights.get(name)! - (STEP * slope) / Math.sqrt(squares.get(name)!))
    }
  }
  return weights
}
