/** Writes canonical JSON (RFC 8785, JCS). Signatures are computed over the bytes of the canonical JSON. */
import canonicalize from 'canonicalize'

/**
 * Writes a JSON value in canonical form: equal values always give equal bytes.
 *
 * @param value is plain JSON data. Object members with the value undefined are left out, as JSON.stringify does.
 * @throws TypeError on a value that JSON cannot hold: undefined, bigint, NaN, infinities, lone surrogates, cycles.
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
