/**
 * Runs the instructions of `regexProgram.ts` like a backtracking engine for regular expressions, and counts each step.
 */
import type { CharTest, Program } from './regexProgram.ts'

/** Reports that a regular expression search took more steps than the caller allows. */
export class TooManyStepsError extends Error {}

export type Found = { steps: number; match: readonly number[] | null }

/**
 * Finds the first match of a regular expression at position `from` or later.
 * @returns in the field `match` the start and the end of the whole match and of each capture group. The number -1
 * stands for a group that matched nothing.
 * @throws {TooManyStepsError} if the search takes more than `stepsMax` steps
 */
export function search(
  program: Program,
  text: string,
  from: number,
  isSticky: boolean,
  stepsMax: number,
): Found {
  const matcher = new Matcher(program, text, stepsMax)
  for (let at = from; at <= text.length; at = matcher.moved(at, 1)) {
    if (matcher.run(0, at)) {
      const groups = matcher.registers.slice(2, 2 * (program.groups + 1))
      return { steps: matcher.steps, match: [at, matcher.end, ...groups] }
    }
    if (isSticky) break
  }
  return { steps: matcher.steps, match: null }
}

/**
 * Sets how many values a backtracking frame holds: instruction, position, last position, direction, and length of the
 * trail.
 */
const FRAME = 5

class Matcher {
  steps = 0
  end = 0
  readonly registers: number[]
  readonly #program: Program
  readonly #text: string
  readonly #stepsMax: number
  /**
   * Holds the frames to which the backtracking search can return. A repetition of one character has one frame, whose
   * position moves by one character at a time.
   */
  readonly #stack: number[] = []
  /**
   * Holds the number of each changed register of the regular expression matcher, followed by the old value of this
   * register.
   */
  readonly #trail: number[] = []

  constructor(program: Program, text: string, stepsMax: number) {
    this.#program = program
    this.#text = text
    this.#stepsMax = stepsMax
    this.registers = new Array<number>(program.registers).fill(-1)
  }

  /**
   * Tells whether the compiled expression from instruction `first` matches the text from position `from`. Sets `end` to
   * the position after the match.
   */
  run(first: number, from: number): boolean {
    const { code } = this.#program
    const stack = this.#stack
    const base = stack.length
    const trail = this.#trail.length
    let at = first
    let pos = from
    while (true) {
      this.#count()
      const one = code[at]!
      let holds = true
      at++
      switch (one.op) {
        case 'accept':
          stack.length = base
          this.end = pos
          return true
        case 'char': {
          const end = this.#pass(one.test, one.back, pos)
          if (end === -1) holds = false
          else pos = end
          break
        }
        case 'run': {
          const end = this.#runOf(one, at, pos)
          if (end === -1) holds = false
          else pos = end
          break
        }
        case 'split':
          this.#push(one.second, pos, pos, 0)
          at = one.first
          break
        case 'jump':
          at = one.to
          break
        case 'save':
          this.#set(one.register, pos)
          break
        case 'begin':
          this.#set(one.count, 0)
          break
        case 'loop': {
          const rounds = this.registers[one.count]!
          if (rounds < one.min) break
          if (rounds === one.max) at = one.exit
          else if (one.greedy) this.#push(one.exit, pos, pos, 0)
          else {
            this.#push(at, pos, pos, 0)
            at = one.exit
          }
          break
        }
        case 'enter':
          for (const capture of one.captures) this.#set(capture, -1)
          this.#set(one.count, this.registers[one.count]! + 1)
          this.#set(one.start, pos)
          break
        case 'again':
          // After the minimum number of iterations, an iteration that matches nothing fails (ECMA-262, RepeatMatcher).
          holds = pos !== this.registers[one.start] || this.registers[one.count]! <= one.min
          at = one.head
          break
        case 'look': {
          const before = this.#trail.length
          holds = this.run(at, pos) !== one.negate
          if (one.negate) this.#undo(before)
          at = one.next
          break
        }
        case 'edge':
          holds = this.#isEdge(one.kind, pos) !== one.negate
          break
        case 'back reference': {
          const end = this.#repeat(one.groups, one.back, pos)
          if (end === -1) holds = false
          else pos = end
        }
      }
      if (holds) continue
      if (stack.length === base) {
        this.#undo(trail)
        return false
      }
      const top = stack.length - FRAME
      const unit = stack[top + 3]!
      at = stack[top]!
      pos = stack[top + 1]!
      this.#undo(stack[top + 4]!)
      if (unit === 0 || pos === stack[top + 2]) stack.length = top
      else stack[top + 1] = this.moved(pos, unit)
    }
  }

  #count(): void {
    if (++this.steps > this.#stepsMax) throw new TooManyStepsError()
  }

  #push(at: number, pos: number, last: number, unit: number): void {
    this.#stack.push(at, pos, last, unit, this.#trail.length)
  }

  #set(register: number, value: number): void {
    this.#trail.push(register, this.registers[register]!)
    this.registers[register] = value
  }

  #undo(length: number): void {
    while (this.#trail.length > length) {
      const value = this.#trail.pop()!
      this.registers[this.#trail.pop()!] = value
    }
  }

  /**
   * Returns the position one character forward (unit 1) or back (unit -1). With the flags u and v a surrogate pair
   * counts as one character.
   */
  moved(pos: number, unit: number): number {
    const next = pos + unit
    if (!this.#program.isUnicode) return next
    const text = this.#text
    if (unit === 1) return next < text.length && text.codePointAt(pos)! > 0xffff ? next + 1 : next
    return next > 0 && text.codePointAt(next - 1)! > 0xffff ? next - 1 : next
  }

  /**
   * Tests the next character of the text, or the previous character if `back` is true. If the character passes the
   * test, returns the position on the other side of the character, and otherwise -1.
   */
  #pass(test: CharTest, back: boolean, pos: number): number {
    const text = this.#text
    if (back ? pos === 0 : pos >= text.length) return -1
    const end = this.moved(pos, back ? -1 : 1)
    const at = back ? end : pos
    return test(this.#program.isUnicode ? text.codePointAt(at)! : text.charCodeAt(at)) ? end : -1
  }

  #runOf(
    { test, min, max, back }: { test: CharTest; min: number; max: number; back: boolean },
    next: number,
    from: number,
  ): number {
    let end = from
    let least = from
    let rounds = 0
    while (rounds < max) {
      this.#count()
      const beyond = this.#pass(test, back, end)
      if (beyond === -1) break
      end = beyond
      if (++rounds === min) least = end
    }
    if (rounds < min) return -1
    const unit = back ? 1 : -1
    if (end !== least) this.#push(next, this.moved(end, unit), least, unit)
    return end
  }

  #isEdge(kind: 'start' | 'end' | 'word', pos: number): boolean {
    const { isMultiline } = this.#program
    if (kind === 'start') return pos === 0 || (isMultiline && this.#isBreak(pos - 1))
    if (kind === 'end') return pos === this.#text.length || (isMultiline && this.#isBreak(pos))
    return this.#isWord(pos - 1) !== this.#isWord(pos)
  }

  #isBreak(at: number): boolean {
    const code = this.#text.charCodeAt(at)
    return code === 0x0a || code === 0x0d || code === 0x2028 || code === 0x2029
  }

  #isWord(at: number): boolean {
    const text = this.#text
    return at >= 0 && at < text.length && this.#program.isWord(text.charCodeAt(at))
  }

  #repeat(groups: readonly number[], back: boolean, pos: number): number {
    const group = groups.find((one) => this.registers[2 * one + 1]! >= 0)
    if (group === undefined) return pos
    const wanted = this.#text.slice(this.registers[2 * group]!, this.registers[2 * group + 1]!)
    const end = back ? pos - wanted.length : pos + wanted.length
    this.steps += wanted.length
    const there = this.#text.slice(Math.min(pos, end), Math.max(pos, end))
    const isSame = (one: string, other: string) =>
      one === other || (this.#program.isCaseless && one.toLowerCase() === other.toLowerCase())
    return end >= 0 && isSame(there, wanted) ? end : -1
  }
}
