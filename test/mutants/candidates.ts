import { parseSync } from 'oxc-parser'

/**
 * Describes a small fault (a mutation) that the tool can plant in a source file, by replacing the code from `start` to
 * `end` with `text`.
 */
export type Candidate = {
  file: string
  start: number
  end: number
  text: string
  kind: string
  /**
   * Tells whether the replacement `text` is a JavaScript expression. If so, the tool can wrap it in code that records
   * whether a test would notice the fault.
   */
  isExpression: boolean
  /** Holds the operator that the fault replaces, or null if it replaces no operator. */
  operation: { operator: string; left: Range; right: Range } | null
  /**
   * Holds the position where the body of the innermost function around the fault starts. Null means that the fault is
   * outside of all functions.
   */
  within: number | null
}

/** Describes a piece of a source file, in UTF-16 units. `end` is the first position after the piece. */
export type Range = { start: number; end: number }

type Node = { type: string; start: number; end: number } & Record<string, unknown>

const SWAPPED: Record<string, string> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
}

/** Lists the parts that can be removed from an SQL statement without making it invalid. */
const SQL_PARTS: readonly [kind: string, pattern: RegExp, text: string][] = [
  // The pattern matches a condition that is on its own line and has no unmatched parenthesis.
  ['where term', /\n[ ]*and (?:[^()\n`$]|\([^()\n]*\)|\$\d+)+(?=\n|`|$)/g, ''],
  ['lock', /\bfor (?:no key update|update|share|key share)(?: of \w+)?(?: skip locked)?\b/g, ''],
  ['lock', / skip locked\b/g, ''],
  ['comparison', / < (?=[\w$(])/g, ' <= '],
  ['comparison', / > (?=[\w$(])/g, ' >= '],
  ['comparison', / <= /g, ' < '],
  ['comparison', / >= /g, ' > '],
]
const IS_SQL = /\b(?:select|insert into|update|delete from)\b/

/**
 * Finds all positions in a file where the tool can plant a small fault: in comparisons, guards, bounds, and the terms
 * and locks of SQL.
 */
export function candidatesIn(file: string, source: string): Candidate[] {
  const found: Candidate[] = []
  const { program } = parseSync(file, source)
  const slice = ({ start, end }: Range) => source.slice(start, end)
  walk(program as unknown as Node, null, (node, within) => {
    const add = (
      { start, end }: Range,
      text: string,
      kind: string,
      more: Partial<Candidate> = {},
    ) =>
      found.push(
        Object.assign(
          { file, start, end, text, kind, within, isExpression: true, operation: null },
          more,
        ),
      )
    if (node.type === 'BinaryExpression' || node.type === 'LogicalExpression') {
      const [left, right] = [node.left as Node, node.right as Node]
      const operator = node.operator as string
      const swapped = SWAPPED[operator]
      if (swapped !== undefined) {
        const kind = operator.length === 2 && /[&|]/.test(operator) ? 'condition' : 'comparison'
        const operation = { operator, left, right }
        add(node, `${slice(left)} ${swapped} ${slice(right)}`, kind, { operation })
      } else if (/^[+-]$/.test(operator) && slice(right) === '1') add(node, slice(left), 'bound')
    } else if (node.type === 'UnaryExpression' && node.operator === '!') {
      add(node, slice(node.argument as Node), 'negation')
    } else if (node.type === 'IfStatement' && (node.alternate ?? null) === null) {
      if (leaves(node.consequent as Node)) add(node.test as Node, 'false', 'early return')
    } else if (node.type === 'TemplateElement' && IS_SQL.test(slice(node))) {
      for (const [kind, pattern, text] of SQL_PARTS) {
        for (const match of slice(node).matchAll(pattern)) {
          const start = node.start + match.index
          add({ start, end: start + match[0].length }, text, `SQL ${kind}`, { isExpression: false })
        }
      }
    }
  })
  return found
}

/** Tells whether a branch of the code immediately leaves the function or the current iteration of a loop. */
function leaves(branch: Node): boolean {
  if (branch.type === 'BlockStatement') {
    const last = (branch.body as Node[]).at(-1)
    return last !== undefined && leaves(last)
  }
  return ['ReturnStatement', 'ThrowStatement', 'ContinueStatement', 'BreakStatement'].includes(
    branch.type,
  )
}

/**
 * @param within is the position where the body of the innermost function around the fault starts, as in `Candidate`.
 */
function walk(
  node: Node,
  within: number | null,
  visit: (node: Node, within: number | null) => void,
): void {
  visit(node, within)
  const body = /Function|^Method/.test(node.type) ? (node.body as Node | null) : null
  const inside =
    body?.type === 'BlockStatement' || body?.type === 'FunctionBody' ? body.start : within
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && 'type' in child) {
        walk(child as Node, child === body ? inside : within, visit)
      }
    }
  }
}
