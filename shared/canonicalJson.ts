/** Canonical JSON (RFC 8785, JCS): the signed bytes. */
import canonicalize from 'canonicalize'

/**
 * Writes a JSON value in its one canonical form.
 *
 * @param value plain JSON data; members that are undefined are left out, as by JSON.stringify.
 * @throws TypeError on a value without a JSON form: undefined, bigint, NaN, infinities, lone surrogates, cycles.
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
