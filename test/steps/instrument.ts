/**
 * Adds a statement that counts a step to each function entry and to each iteration of a loop in a JavaScript program.
 */
import { parseSync } from 'oxc-parser'

type Node = { type: string; start: number; end: number } & Record<string, unknown>

const STEP = '$steps[0]++'

/**
 * Holds the code that precedes the instrumented code (which counts its steps). Each spread operator counts as many
 * steps as its operand has elements.
 */
const PRELUDE = `const $steps = globalThis.$steps;
function $spread(value) {
  const size = value?.length ?? value?.size ?? 0;
  if (typeof size === "number") $steps[0] += size;
  return value;
}
function $copied(value) {
  if (typeof value === "object" && value !== null) for (const _ in value) $steps[0]++;
  return value;
}
`

/**
 * Returns the given JavaScript program with the statement `$steps[0]++` (counter.ts) added at each function entry and
 * in each iteration of a loop.
 */
export function instrument(source: string): string {
  const { program, errors } = parseSync('bundle.js', source)
  if (errors.length > 0) throw new Error(errors[0]!.message)
  const inserted: { at: number; text: string; order: number }[] = []
  const insert = (at: number, text: string) => inserted.push({ at, text, order: inserted.length })
  const wrap = (node: Node, before: string, after: string) => {
    insert(node.start, before)
    // If several texts are inserted at one position, the text that closes a syntax node comes before the text that
    // opens the next. If two nested nodes end at the same position, the inner node closes first.
    inserted.push({ at: node.end, text: after, order: -inserted.length })
  }
  const objectSpreads = new Set<unknown>()
  walk(program as unknown as Node, (node) => {
    const body = node.body as Node | null
    switch (node.type) {
      case 'FunctionDeclaration':
      case 'FunctionExpression':
      case 'ArrowFunctionExpression':
        if (body === null) break
        if (body.type !== 'BlockStatement') wrap(body, `(${STEP}, `, ')')
        else insert(afterDirectives(body), `${STEP};`)
        break
      case 'ForStatement':
      case 'ForInStatement':
      case 'ForOfStatement':
      case 'WhileStatement':
      case 'DoWhileStatement':
        if (body!.type === 'BlockStatement') insert(body!.start + 1, `${STEP};`)
        else wrap(body!, `{${STEP};`, '}')
        break
      case 'ObjectExpression':
        for (const one of node.properties as Node[]) objectSpreads.add(one)
        break
      case 'SpreadElement':
        wrap(node.argument as Node, objectSpreads.has(node) ? '$copied(' : '$spread(', ')')
        break
      case 'VariableDeclarator':
        if (hasRest(node.id as Node) && node.init) wrap(node.init as Node, '$spread(', ')')
    }
  })
  inserted.sort((one, other) => one.at - other.at || one.order - other.order)
  let text = PRELUDE
  let from = 0
  for (const { at, text: added } of inserted) {
    text += source.slice(from, at) + added
    from = at
  }
  return text + source.slice(from)
}

function afterDirectives(body: Node): number {
  const last = (body.body as Node[]).findLast(({ directive }) => typeof directive === 'string')
  return last === undefined ? body.start + 1 : last.end
}

const hasRest = (pattern: Node): boolean =>
  pattern.type === 'ArrayPattern' &&
  (pattern.elements as (Node | null)[]).at(-1)?.type === 'RestElement'

function walk(node: Node, visit: (node: Node) => void): void {
  visit(node)
  for (const value of Object.values(node)) {
    for (const child of Array.isArray(value) ? value : [value]) {
      if (typeof child === 'object' && child !== null && typeof child.type === 'string') {
        walk(child, visit)
      }
    }
  }
}
