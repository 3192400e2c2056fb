/** Writes canonical JSON (RFC 8785, JCS), because signatures need equal bytes for equal values. */
import canonicalize from 'canonicalize'

/**
 * Writes a JSON value in canonical form, so that equal values always give equal bytes.
 *
 * @param value is plain JSON data. The function leaves out object members with the value undefined, as JSON.stringify
 * does.
 * @throws TypeError if the value contains something that JSON cannot hold: undefined, bigint, NaN, infinities, lone
 * surrogates, cycles.
 */
export function canonicalJson(value: unknown): string {
  let text: string | undefined
  try {
    text = canonicalize(value)
  } catch (error) {
    throw new TypeError('value has no canonical JSON form', { cause: error })
  }
  if (text === undefined) throw new TypeError('value has no canonical JSON form')
  return text
}
