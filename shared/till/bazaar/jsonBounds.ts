/** Checks the depth, the length and the characters of JSON from an untrusted source. */

/**
 * Sets the maximum depth of nested JSON. The service does not accept more deeply nested JSON as an example of a call.
 */
const DEPTH_MAX = 20

/**
 * Returns the fault of a JSON value that is nested too deeply or is too long. Null means that the value has no fault.
 * The check stops as soon as the value exceeds a limit, so that a large value costs little time.
 * @param charsMax is the approximate maximum length of the value's JSON text.
 */
export function jsonFault(value: unknown, charsMax: number): string | null {
  let left = charsMax
  const isDeep = (part: unknown, depth: number): boolean => {
    if (depth > DEPTH_MAX) return true
    if (typeof part === 'string') left -= part.length + 2
    else if (typeof part !== 'object' || part === null) left -= 4
    else {
      left -= 2
      for (const [key, inner] of Object.entries(part)) {
        if (left < 0) return false
        left -= Array.isArray(part) ? 1 : key.length + 4
        if (isDeep(inner, depth + 1)) return true
      }
    }
    return false
  }
  if (isDeep(value, 0)) return `must be nested at most ${DEPTH_MAX} levels`
  return left < 0 ? `must be at most ${charsMax} characters of JSON` : null
}
