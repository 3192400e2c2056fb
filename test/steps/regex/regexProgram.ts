/**
 * Compiles a regular expression to instructions of a backtracking matcher. `regexRun.ts` runs these instructions and
 * counts them.
 */
import { type AST, RegExpParser } from '@eslint-community/regexpp'

/**
 * Tests whether the next character of the text matches this point of the regular expression. A character is a code
 * unit, or a code point with the flag u or v.
 */
export type CharTest = (code: number) => boolean

type Instruction =
  | { op: 'char'; test: CharTest; back: boolean }
  /**
   * Matches a repeated character of a regular expression, such as `a*`. All repetitions of the character need only one
   * backtracking frame.
   */
  | { op: 'run'; test: CharTest; min: number; max: number; back: boolean }
  | { op: 'split'; first: number; second: number }
  | { op: 'jump'; to: number }
  | { op: 'save'; register: number }
  | { op: 'begin'; count: number }
  /**
   * Decides whether a loop of the regular expression runs once more (at the next instruction) or ends (at the
   * instruction `exit`).
   */
  | { op: 'loop'; count: number; min: number; max: number; greedy: boolean; exit: number }
  /** Begins an iteration of a loop in the regular expression, and clears the captures of the previous iteration. */
  | { op: 'enter'; count: number; start: number; captures: readonly number[] }
  | { op: 'again'; count: number; start: number; min: number; head: number }
  | { op: 'look'; negate: boolean; next: number }
  | { op: 'edge'; kind: 'start' | 'end' | 'word'; negate: boolean }
  | { op: 'back reference'; groups: readonly number[]; back: boolean }
  | { op: 'accept' }

export type Program = {
  code: readonly Instruction[]
  registers: number
  groups: number
  isUnicode: boolean
  isMultiline: boolean
  isCaseless: boolean
  isWord: CharTest
}

/** @throws Error for syntax that no tested regular expression uses, namely strings in a class with the flag v. */
export function compile(source: string, flags: string): Program {
  return new Compiler(source, flags).program()
}

class Compiler {
  readonly #flags: string
  readonly #isUnicode: boolean
  readonly #flagsOfPattern: string
  readonly #pattern: AST.Pattern
  readonly #groups: AST.CapturingGroup[] = []
  readonly #code: Instruction[] = []
  #registers: number

  constructor(source: string, flags: string) {
    this.#isUnicode = /[uv]/.test(flags)
    this.#flagsOfPattern = flags
    this.#flags = flags.replace(/[^iusv]/g, '')
    this.#pattern = new RegExpParser().parsePattern(source, undefined, undefined, {
      unicode: flags.includes('u'),
      unicodeSets: flags.includes('v'),
    })
    this.#findGroups(this.#pattern)
    this.#registers = 2 * (this.#groups.length + 1)
  }

  program(): Program {
    this.#alternatives(this.#pattern.alternatives, false)
    this.#code.push({ op: 'accept' })
    return {
      code: this.#code,
      registers: this.#registers,
      groups: this.#groups.length,
      isUnicode: this.#isUnicode,
      isCaseless: this.#flagsOfPattern.includes('i'),
      isMultiline: this.#flagsOfPattern.includes('m'),
      isWord: this.#test('\\w'),
    }
  }

  #findGroups(node: unknown): void {
    if (Array.isArray(node)) for (const one of node) this.#findGroups(one)
    else if (typeof node === 'object' && node !== null) {
      if ((node as AST.Node).type === 'CapturingGroup')
        this.#groups.push(node as AST.CapturingGroup)
      for (const part of ['alternatives', 'elements', 'element'] as const) {
        if (part in node) this.#findGroups((node as Record<string, unknown>)[part])
      }
    }
  }

  #alternatives(all: readonly AST.Alternative[], back: boolean): void {
    const jumps: { op: 'jump'; to: number }[] = []
    for (const [n, { elements }] of all.entries()) {
      const isLast = n === all.length - 1
      const split = { op: 'split' as const, first: this.#code.length + 1, second: 0 }
      if (!isLast) this.#code.push(split)
      for (const element of back ? elements.toReversed() : elements) this.#element(element, back)
      if (isLast) break
      const jump = { op: 'jump' as const, to: 0 }
      this.#code.push(jump)
      jumps.push(jump)
      split.second = this.#code.length
    }
    for (const jump of jumps) jump.to = this.#code.length
  }

  #element(node: AST.Element, back: boolean): void {
    const code = this.#code
    switch (node.type) {
      case 'Group':
        if (node.modifiers !== null) throw new Error(`modifiers are not known: ${node.raw}`)
        this.#alternatives(node.alternatives, back)
        return
      case 'CapturingGroup': {
        const n = this.#groups.indexOf(node) + 1
        code.push({ op: 'save', register: 2 * n + (back ? 1 : 0) })
        this.#alternatives(node.alternatives, back)
        code.push({ op: 'save', register: 2 * n + (back ? 0 : 1) })
        return
      }
      case 'Quantifier':
        this.#quantifier(node, back)
        return
      case 'Assertion':
        this.#assertion(node)
        return
      case 'Backreference': {
        const resolved = Array.isArray(node.resolved) ? node.resolved : [node.resolved]
        const groups = resolved.map((group) => this.#groups.indexOf(group) + 1)
        code.push({ op: 'back reference', groups, back })
        return
      }
      default:
        code.push({ op: 'char', test: this.#test(node.raw), back })
    }
  }

  #assertion(node: AST.Assertion): void {
    if (node.kind !== 'lookahead' && node.kind !== 'lookbehind') {
      const negate = node.kind === 'word' && node.negate
      this.#code.push({ op: 'edge', kind: node.kind, negate })
      return
    }
    const look = { op: 'look' as const, negate: node.negate, next: 0 }
    this.#code.push(look)
    this.#alternatives(node.alternatives, node.kind === 'lookbehind')
    this.#code.push({ op: 'accept' })
    look.next = this.#code.length
  }

  #quantifier({ element, min, max, greedy }: AST.Quantifier, back: boolean): void {
    const isChar = ['Character', 'CharacterClass', 'CharacterSet', 'ExpressionCharacterClass']
    if (greedy && isChar.includes(element.type)) {
      this.#code.push({ op: 'run', test: this.#test(element.raw), min, max, back })
      return
    }
    const count = this.#registers++
    const start = this.#registers++
    const captures = this.#groups.flatMap((group, n) =>
      group.start >= element.start && group.end <= element.end ? [2 * n + 2, 2 * n + 3] : [],
    )
    this.#code.push({ op: 'begin', count })
    const head = this.#code.length
    const loop = { op: 'loop' as const, count, min, max, greedy, exit: 0 }
    this.#code.push(loop, { op: 'enter', count, start, captures })
    this.#element(element, back)
    this.#code.push({ op: 'again', count, start, min, head })
    loop.exit = this.#code.length
  }

  readonly #tests = new Map<string, CharTest>()

  /**
   * Tests single characters of a regular expression search with the native engine, so that classes, properties and
   * letter case behave exactly as in a native search.
   */
  #test(raw: string): CharTest {
    const known = this.#tests.get(raw)
    if (known !== undefined) return known
    const one = new RegExp(`^(?:${raw})$`, this.#flags)
    const answers = new Map<number, boolean>()
    const ascii = Array.from({ length: 128 }, (_, code) => one.test(String.fromCharCode(code)))
    const test = (code: number) => {
      if (code < 128) return ascii[code]!
      let answer = answers.get(code)
      if (answer === undefined) {
        answer = one.test(String.fromCodePoint(code))
        answers.set(code, answer)
      }
      return answer
    }
    this.#tests.set(raw, test)
    return test
  }
}
