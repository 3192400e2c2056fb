/** A tree: what it adds to the log-odds, or the trees for a candidate without and with a piece of evidence. */
export type CodeTree = number | readonly [evidence: string, without: CodeTree, having: CodeTree]

/** The share of candidates with this evidence that are codes: the logistic function of the sum of all trees. */
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
