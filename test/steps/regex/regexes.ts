/** Replaces each search with a regular expression by one that counts the steps of a backtracking engine. */
import { add, counts, uncounted } from '../counter.ts'
import { compile, type Program } from './regexProgram.ts'
import { search } from './regexRun.ts'

/**
 * Sets the maximum number of steps of a regular expression search. A search that takes more steps counts as
 * exponential.
 */
const STEPS_MAX = 5_000_000

const programs = new Map<string, Program>()

function programOf(regex: RegExp): Program {
  const key = regex.toString()
  let program = programs.get(key)
  if (program === undefined) {
    program = compile(regex.source, regex.flags)
    programs.set(key, program)
  }
  return program
}

/**
 * Lists the regular expression searches in which the counting matcher and the native engine disagree. Their step counts
 * are meaningless.
 */
export const differences: string[] = []

/**
 * Counts the steps of every regular expression search. By ECMA-262, `test`, `match`, `matchAll`, `replace`, `search`
 * and `split` call the method `exec`, even a replaced one. Therefore it is enough to replace `exec`.
 */
export function countRegexes(): void {
  const native = RegExp.prototype.exec
  RegExp.prototype.exec = function (given) {
    if (!counts()) return native.call(this, given)
    const { steps, result } = uncounted(() => {
      const text = String(given)
      const from = this.global || this.sticky ? this.lastIndex : 0
      const { steps, match } = search(programOf(this), text, from, this.sticky, STEPS_MAX)
      const result = native.call(this, text)
      if (!isSame(match, result, text)) {
        differences.push(`${this} at ${from} of ${JSON.stringify(text.slice(0, 200))}`)
      }
      return { steps, result }
    })
    add(steps)
    return result
  }
}

function isSame(match: readonly number[] | null, result: RegExpExecArray | null, text: string) {
  if (match === null || result === null) return match === result
  const texts = Array.from(result, (_, n) => {
    const [start, end] = [match[2 * n]!, match[2 * n + 1]!]
    return start < 0 || end < 0 ? undefined : text.slice(start, end)
  })
  return match[0] === result.index && texts.every((one, n) => one === result[n])
}
