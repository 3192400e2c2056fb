/**
 * Makes the built-in methods of JavaScript count steps, because they contain hidden loops. Each call adds the length of
 * the data that it really reads or copies.
 */
import { Hash, Hmac } from 'node:crypto'
import { add, counts, uncounted } from './counter.ts'

type Method = (this: never, ...given: never[]) => unknown
/**
 * Returns how many steps one call of a built-in method costs, depending on the object, the arguments and the result of
 * the call.
 */
type Cost = (self: never, given: never[], result: never) => number
type Holder = Record<string, unknown>

/** Replaces built-in methods of an object by methods that add their cost to the step count. */
function count(holder: object, names: string, cost: Cost): void {
  for (const name of names.split(' ')) {
    const native = (holder as Holder)[name] as Method | undefined
    if (typeof native !== 'function') throw new Error(`no such built-in: ${name}`)
    const counted = {
      [name](this: never, ...given: never[]) {
        if (!counts()) return Reflect.apply(native, this, given)
        // A built-in function may call other built-in functions, but only the outer function adds its cost to the step
        // count.
        const result = takesFunction(given)
          ? Reflect.apply(native, this, given)
          : uncounted(() => Reflect.apply(native, this, given))
        add(1 + uncounted(() => cost(this, given, result as never)))
        return result
      },
    }[name]
    const own = Object.getOwnPropertyDescriptor(holder, name)
    if (own?.configurable === false) (holder as Holder)[name] = counted
    else Object.defineProperty(holder, name, { value: counted, writable: true, configurable: true })
  }
}

/**
 * Tells whether an argument of a built-in method counts its own steps, so that the method need not count them. The
 * steps of a function are counted by the code under test, and the steps of a regular expression by the regex engine.
 */
const takesFunction = (given: unknown[]): boolean =>
  given.some((one) => typeof one === 'function' || one instanceof RegExp)

const sizeOf = (value: unknown): number => {
  if (typeof value === 'string' || Array.isArray(value)) return value.length
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength
  if (value instanceof Set || value instanceof Map) return value.size
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0
}

/**
 * Returns how many comparisons a plain text search makes between the positions `from` and `found`: one for each
 * position, and one for each equal letter.
 */
function searchCost(text: string, needle: string, from: number, found: number): number {
  const last = found === -1 ? text.length - needle.length : found
  if (needle.length < 2) return Math.max(0, last - from)
  let steps = 0
  for (let at = Math.max(0, from); at <= last; at++) {
    let n = 0
    while (n < needle.length && text.charCodeAt(at + n) === needle.charCodeAt(n)) n++
    steps += n + 1
  }
  return steps
}

function allCost(text: string, needle: unknown): number {
  if (typeof needle !== 'string' || needle.length === 0) return text.length
  let steps = text.length
  for (let from = 0; ; ) {
    const found = text.indexOf(needle, from)
    steps += searchCost(text, needle, from, found)
    if (found === -1) return steps
    from = found + needle.length
  }
}

const whole: Cost = (self) => sizeOf(self)
const made: Cost = (_self, _given, result) => sizeOf(result)
const both: Cost = (self, _given, result) => sizeOf(self) + sizeOf(result)
const firstGiven: Cost = (_self, given) => sizeOf(given[0])

export function countBuiltIns(): void {
  const text = String.prototype
  count(text, 'indexOf', (self, [needle, from], found) =>
    searchCost(self, String(needle), Number(from ?? 0), found),
  )
  count(text, 'includes', (self, [needle, from]) => {
    const [whole, wanted, start] = [String(self), String(needle), Number(from ?? 0)]
    return searchCost(whole, wanted, start, whole.indexOf(wanted, start))
  })
  count(text, 'lastIndexOf', (self, [needle, from], found: number) =>
    searchCost(
      self,
      String(needle),
      found + 1,
      Math.min(Number(from ?? sizeOf(self)), sizeOf(self)),
    ),
  )
  count(text, 'split replaceAll replace', (self, [needle], result) =>
    (needle as unknown) instanceof RegExp
      ? sizeOf(result)
      : allCost(self, needle) + (typeof result === 'string' ? sizeOf(result) : 0),
  )
  count(text, 'startsWith endsWith', firstGiven)
  count(text, 'slice substring substr trim trimStart trimEnd repeat padEnd padStart concat', made)
  count(text, 'toLowerCase toUpperCase toLocaleLowerCase normalize toWellFormed isWellFormed', both)
  count(text, 'localeCompare', whole)
  const list = Array.prototype
  count(list, 'indexOf lastIndexOf includes', (self, given, result) =>
    typeof result === 'number' && result >= 0
      ? (result as number)
      : result === true
        ? (self as unknown[]).indexOf(given[0])
        : sizeOf(self),
  )
  count(list, 'shift unshift concat join fill reverse toReversed toSpliced with flat', both)
  count(list, 'splice', (self, [start]) =>
    Math.max(0, sizeOf(self) - Math.max(0, Number(start ?? 0))),
  )
  count(list, 'sort toSorted', (self) => sizeOf(self) * Math.log2(2 + sizeOf(self)))
  count(list, 'slice', made)
  count(Array, 'from', made)
  count(Object, 'keys entries values fromEntries assign getOwnPropertyNames', made)
  countBytes()
  count(JSON, 'parse', firstGiven)
  count(JSON, 'stringify', made)
  count(
    globalThis,
    'encodeURIComponent decodeURIComponent encodeURI decodeURI atob btoa',
    (_self, [given], result) => sizeOf(given) + sizeOf(result),
  )
  count(globalThis, 'parseInt parseFloat structuredClone', firstGiven)
  // Converting n digits to a BigInt takes a number of steps in proportion to n * n, so the function counts so many
  // steps.
  const integer = globalThis.BigInt
  globalThis.BigInt = new Proxy(integer, {
    apply(target, self, given: [string]) {
      if (typeof given[0] === 'string') add(given[0].length ** 2 / 16)
      return Reflect.apply(target, self, given)
    },
  })
  for (const name of ['Set', 'Map', 'URL', 'URLSearchParams'] as const) {
    const native = globalThis[name] as unknown as new (...given: unknown[]) => object
    const counted = new Proxy(native, {
      construct(target, given, asked) {
        add(1 + sizeOf(given[0]))
        return Reflect.construct(target, given, asked)
      },
    })
    Object.assign(globalThis, { [name]: counted })
  }
}

function countBytes(): void {
  const bytes = Uint8Array.prototype
  const search: Cost = (self, [needle, from], found: unknown) => {
    const end = typeof found === 'number' && found >= 0 ? (found as number) : sizeOf(self)
    return (end - Number(from ?? 0)) * Math.max(1, sizeOf(needle))
  }
  count(bytes, 'indexOf includes', search)
  count(bytes, 'slice set fill join', (self, given, result) =>
    ArrayBuffer.isView(result) ? sizeOf(result) : Math.max(sizeOf(self), sizeOf(given[0])),
  )
  count(Buffer.prototype, 'toString utf8Slice latin1Slice', made)
  count(Buffer.prototype, 'indexOf includes', search)
  count(Buffer.prototype, 'equals compare copy', whole)
  count(Buffer.prototype, 'write', firstGiven)
  count(Buffer, 'concat', made)
  count(Buffer, 'from', firstGiven)
  count(Buffer, 'byteLength', firstGiven)
  count(TextDecoder.prototype, 'decode', firstGiven)
  count(TextEncoder.prototype, 'encode', firstGiven)
  count(Hash.prototype, 'update', firstGiven)
  count(Hmac.prototype, 'update', firstGiven)
}
