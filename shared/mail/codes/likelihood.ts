/**
 * Describes a decision tree that weighs the evidence about one candidate (a possible one-time code). A leaf of the
 * decision tree is a number that the tree adds to the log-odds. A branch of the decision tree names a piece of
 * evidence. Each branch has two subtrees: one for candidates without the evidence, and one for candidates with the
 * evidence.
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
