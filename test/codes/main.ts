/**
 * `bun run codes -- SET.jsonl.gz…` measures on sets of mails how well the service finds codes and links. It prints each
 * rate with its 95 % interval, and how often a code of each confidence is right. Without a set, the command uses the
 * sets in test/fixtures/codes.
 */
import { type Calibration, score } from '../shared/mail/codes/codeMails/score.ts'
import { calibrationTable, shown } from './report.ts'
import { openSets, readSet } from './sets.ts'

const say = (line: string) => process.stdout.write(`${line}\n`)

const all: Calibration = new Map()
const paths = process.argv.slice(2)
const sets = paths.length > 0 ? paths : openSets()
for (const path of sets) {
  const { mails, codes, first, links, calibration, misses } = await score(readSet(path))
  say(`${path}: ${mails} mails`)
  say(`  ${shown('codes: precision', codes.precision)}`)
  say(`  ${shown('codes: recall', codes.recall)}`)
  say(`  ${shown('first code right', first)}`)
  say(`  ${shown('links: precision', links.precision)}`)
  say(`  ${shown('links: recall', links.recall)}`)
  for (const miss of misses) say(`  - ${miss}`)
  for (const [confidence, { right, all: count }] of calibration) {
    const sum = all.get(confidence) ?? { right: 0, all: 0 }
    all.set(confidence, { right: sum.right + right, all: sum.all + count })
  }
}
say('codes by their confidence that are right:')
for (const line of calibrationTable(all)) say(`  ${line}`)
