/** Holds the sentence with which error messages explain that {@link losesDigits} refuses a number. */
export const DIGITS_RULE = 'hold numbers beyond 2^53 - 1 as text: JSON numbers lose their digits'

/**
 * Tells whether a parsed JSON value holds a number whose digits JSON.parse may have changed (RFC 8259 §6). For example,
 * JSON.parse turns both 9007199254740992 and 9007199254740993 into the same number.
 */
export function losesDigits(value: unknown): boolean {
  // The function keeps the values to check in a list, because with recursion, a deeply nested value would overflow the
  // stack.
  const left: unknown[] = [value]
  while (left.length > 0) {
    const one = left.pop()
    if (typeof one === 'number' && Math.abs(one) > Number.MAX_SAFE_INTEGER) return true
    if (typeof one === 'object' && one !== null)
      for (const item of Object.values(one)) left.push(item)
  }
  return false
}
