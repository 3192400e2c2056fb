/**
 * Marks source code, so that a run of the tests records which faults could change a result. A test that merely runs the
 * faulty code does not always notice the fault: `a < b` and `a <= b` differ only if a test makes both sides equal.
 */
import type { Candidate, Range } from './candidates.ts'

/**
 * Holds the code that is inserted at the beginning of a marked source file. It appends the marks to a file that an
 * environment variable names. Some processes of the service have no environment, so the code then reads the
 * environments of their parents. In a browser, the code records nothing. Each process and global object records a mark
 * only once. The code is a single line, so that the line numbers of the source file stay the same.
 */
const PREFIX = `globalThis.__mark ??= (() => {
  const seen = new Set();
  let file;
  const output = () => {
    if (typeof process === 'undefined') return '';
    const { readFileSync } = process.getBuiltinModule('node:fs');
    const own = process.env.MUTANTS_REACH;
    if (own) return own;
    try {
      for (let pid = process.ppid; pid > 1; pid = readFileSync('/proc/' + pid + '/stat', 'utf8').split(') ')[1].split(' ')[1]) {
        const value = /(?:^|\\0)MUTANTS_REACH=([^\\0]+)/.exec(readFileSync('/proc/' + pid + '/environ', 'utf8'))?.[1];
        if (value) return value;
      }
    } catch {}
    return '';
  };
  const reach = (mark) => {
    if (seen.has(mark)) return;
    seen.add(mark);
    file ??= output();
    if (file) process.getBuiltinModule('node:fs').appendFileSync(file, mark + '\\n');
  };
  const note = (differs, mark, value) => { if (differs) reach(mark); return value };
  return {
    reach,
    truthy: (mark, value) => note(value, mark, value),
    falsy: (mark, value) => note(!value, mark, value),
    '<': (mark, a, b) => note(a < b !== a <= b, mark, a < b),
    '<=': (mark, a, b) => note(a < b !== a <= b, mark, a <= b),
    '>': (mark, a, b) => note(a > b !== a >= b, mark, a > b),
    '>=': (mark, a, b) => note(a > b !== a >= b, mark, a >= b),
  }
})();`.replaceAll(/\n */g, ' ')

/**
 * Inserts `text` at the position `at` in place of `length` characters. Of several insertions at one position, the
 * lowest `order` comes first.
 */
type Edit = { at: number; length: number; order: number; text: string }

/**
 * Names the mark that the marked code records when the fault could change a result:
 * - a comparison of two values (`<`) records its mark if both values are equal
 * - `&&` records its mark if one of its values is falsy, and `||` records its mark if one of its values is truthy
 * - a fault that makes a condition false records its mark if the condition was true
 * - another expression records its mark if the expression is computed
 * - SQL records its mark if the function around the SQL runs; or if the file is loaded and no function is around the
 *   SQL
 */
export function markOf({ file, start, end, kind, isExpression, within }: Candidate): string {
  return isExpression ? `${file}:${start}-${end} ${kind}` : `${file}{${within ?? 'loaded'}`
}

/**
 * Inserts the marks (code that records which tests ran it) of all candidates (possible faults) of a source file. The
 * file must have at least one candidate.
 */
export function markSource(source: string, candidates: readonly Candidate[]): string {
  const edits: Edit[] = []
  const wrap = ({ start, end }: Range, call: string) => {
    // If two marked expressions begin at the same position, the longer expression opens first and closes last.
    edits.push({ at: start, length: 0, order: source.length - end, text: call })
    edits.push({ at: end, length: 0, order: -start - source.length, text: ')' })
  }
  const functions = new Map<number, string>()
  for (const candidate of candidates) {
    const { start, end, kind, within, operation } = candidate
    const mark = JSON.stringify(markOf(candidate))
    if (!candidate.isExpression) {
      if (within !== null) functions.set(within, mark)
    } else if (operation !== null && /^[<>]/.test(operation.operator)) {
      const { operator, left, right } = operation
      wrap({ start, end }, `globalThis.__mark['${operator}'](${mark}, `)
      const gap = source.slice(left.end, right.start)
      const text = gap.replace(operator, ',')
      edits.push({ at: left.end, length: gap.length, order: -1, text })
    } else if (operation !== null && /[&|]/.test(operation.operator)) {
      const call = `globalThis.__mark.${operation.operator === '&&' ? 'falsy' : 'truthy'}(${mark}, `
      wrap(operation.left, call)
      wrap(operation.right, call)
    } else if (kind === 'early return') wrap({ start, end }, `globalThis.__mark.truthy(${mark}, `)
    else wrap({ start, end }, `(globalThis.__mark.reach(${mark}), `)
  }
  for (const [within, mark] of functions) {
    const text = ` globalThis.__mark.reach(${mark});`
    edits.push({ at: within + 1, length: 0, order: -source.length * 3, text })
  }
  const loaded = JSON.stringify(`${candidates[0]!.file}{loaded`)
  return `${PREFIX}globalThis.__mark.reach(${loaded});${apply(source, edits)}`
}

function apply(source: string, edits: Edit[]): string {
  edits.sort((one, other) => one.at - other.at || one.order - other.order)
  let text = ''
  let done = 0
  for (const edit of edits) {
    text += source.slice(done, edit.at) + edit.text
    done = edit.at + edit.length
  }
  return text + source.slice(done)
}
