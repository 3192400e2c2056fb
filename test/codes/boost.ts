/**
 * Learns decision trees by gradient boosting with the logistic loss (Friedman 2001). The value of each leaf is one
 * Newton step, and LEAF_PENALTY keeps this step small.
 */
import type { CodeTree } from '../../shared/mail/codes/likelihood.ts'

/**
 * Describes a candidate (a number or a word that may be a one-time code): its evidence, its weight, and whether it
 * really is a code.
 */
export type Example = { evidence: string[]; isCode: boolean; weight: number; mail: number }

const TREES = 200
const DEPTH = 4
const RATE = 0.2
const LEAF_PENALTY = 1
/**
 * Sets the minimum total of p(1 - p) on each side of a split in a decision tree. Here p is the predicted probability of
 * an example.
 */
const SIDE_MIN = 1
/**
 * Sets the minimum number of mails in which a piece of evidence for a one-time code must occur. The training ignores
 * rarer evidence.
 */
const MAILS_MIN = 5

type Row = { has: ReadonlySet<string>; isCode: number; weight: number; score: number }
type Sums = { slope: number; curve: number }

export function learnTrees(examples: readonly Example[]): { start: number; trees: CodeTree[] } {
  const names = namesIn(examples)
  const codes = examples.reduce((sum, one) => sum + (one.isCode ? one.weight : 0), 0)
  const all = examples.reduce((sum, { weight }) => sum + weight, 0)
  const start = round(Math.log(codes / (all - codes)))
  const rows = examples.map(
    ({ evidence, isCode, weight }): Row => ({
      has: new Set(evidence.filter((name) => names.has(name))),
      isCode: isCode ? 1 : 0,
      weight,
      score: start,
    }),
  )
  const trees = Array.from({ length: TREES }, () => {
    const tree = grow(rows, DEPTH)
    for (const row of rows) row.score += leafOf(tree, row)
    return tree
  })
  return { start, trees }
}

function namesIn(examples: readonly Example[]): Set<string> {
  const mails = new Map<string, Set<number>>()
  for (const { evidence, mail } of examples) {
    for (const name of evidence) mails.set(name, (mails.get(name) ?? new Set()).add(mail))
  }
  return new Set([...mails.keys()].filter((name) => mails.get(name)!.size >= MAILS_MIN))
}

/** Returns the first and the second derivative of the logistic loss for one example. */
function lossOf({ isCode, weight, score }: Row): Sums {
  const p = 1 / (1 + Math.exp(-score))
  return { slope: weight * (p - isCode), curve: weight * p * (1 - p) }
}

function grow(rows: readonly Row[], depth: number): CodeTree {
  const all: Sums = { slope: 0, curve: 0 }
  const having = new Map<string, Sums>()
  for (const row of rows) {
    const { slope, curve } = lossOf(row)
    all.slope += slope
    all.curve += curve
    if (depth === 0) continue
    for (const name of row.has) {
      const sums = having.get(name) ?? { slope: 0, curve: 0 }
      having.set(name, { slope: sums.slope + slope, curve: sums.curve + curve })
    }
  }
  const name = bestSplit(all, having)
  if (name === undefined) return round((-RATE * all.slope) / (all.curve + LEAF_PENALTY))
  return [
    name,
    grow(
      rows.filter(({ has }) => !has.has(name)),
      depth - 1,
    ),
    grow(
      rows.filter(({ has }) => has.has(name)),
      depth - 1,
    ),
  ]
}

const gain = ({ slope, curve }: Sums) => slope ** 2 / (curve + LEAF_PENALTY)

/**
 * Finds the piece of evidence for a one-time code that reduces the loss most when it splits the training examples. If
 * two pieces reduce the loss equally, the first name in alphabetical order wins, so that each training gives the same
 * model.
 */
function bestSplit(all: Sums, having: ReadonlyMap<string, Sums>): string | undefined {
  let best: string | undefined
  let most = 1e-3
  for (const name of [...having.keys()].toSorted()) {
    const sums = having.get(name)!
    const others = { slope: all.slope - sums.slope, curve: all.curve - sums.curve }
    if (sums.curve < SIDE_MIN || others.curve < SIDE_MIN) continue
    const gained = gain(sums) + gain(others) - gain(all)
    if (gained > most) {
      best = name
      most = gained
    }
  }
  return best
}

function leafOf(tree: CodeTree, { has }: Row): number {
  let node = tree
  while (typeof node !== 'number') node = has.has(node[0]) ? node[2] : node[1]
  return node
}

const round = (value: number) => Math.round(1_000 * value) / 1_000
