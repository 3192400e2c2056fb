/**
 * Describes a decision tree that weighs the evidence about one candidate (a possible one-time code). A leaf is a number
 * that the tree adds to the log-odds. A branch names a piece of evidence, and has one subtree for candidates without it
 * and one for candidates with it.
 */
export type CodeTree = number | readonly [evidence: string, without: CodeTree, having: CodeTree]

/**
 * Returns the probability that a candidate with the given evidence is a one-time code. The probability is the logistic
 * function of the sum of all decision trees.
 */
export function likelihood(
  { start, trees }: { start: number; trees: readonly CodeTree[] },
  evidence: ReadonlySet<string>,
): number {
  let sum = start
  for (const tree of trees) {
    let node = tree
    while (typeof node !== 'number') node = evidence.has(node[0]) ? node[2] : node[1]
    sum += node
  }
  return 1 / (1 + Math.exp(-sum))
}
