import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../shared/canonicalJson.ts'
import { badRequest, conflict } from '../errors.ts'

const KEY_FORM = /^[\x21-\x7e]{1,255}$/

/**
 * Checks the header `Idempotency-Key`. @returns `null` if the request has no header `Idempotency-Key`. @throws
 * {ApiError} 400 for an invalid `Idempotency-Key`.
 */
export function readIdempotencyKey(given: string | null | undefined): string | null {
  if (given === null || given === undefined) return null
  if (KEY_FORM.test(given)) return given
  throw badRequest('Idempotency-Key must be 1 to 255 visible ASCII characters')
}

/**
 * Returns the hash of a request, which the service stores with the idempotency key. The order of the fields does not
 * change the hash.
 */
export const requestHash = (request: unknown): Buffer =>
  createHash('sha256').update(canonicalJson(request)).digest()

/** Makes the 409 error for an idempotency key that belongs to another request. */
export const keyOfAnother = () => conflict('Idempotency-Key was used for another request')
