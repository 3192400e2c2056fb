import { ApiError } from './errors.ts'
import type { RequestState } from './requestState.ts'

/** Bytes of bodies in memory. Decoded, and again for PostgreSQL, they take several times as much. */
const HELD_MAX_BYTES = 256 * 1024 * 1024
const RETRY_S = 2

/** Counts the bytes of bodies in memory: many large ones must not exhaust the process. */
export class HeldBodies {
  #bytes = 0

  /** Adds bytes of a request's body. @throws {ApiError} 503 when all bodies together are too large. */
  hold(state: RequestState, bytes: number): void {
    if (this.#bytes + bytes > HELD_MAX_BYTES) {
      const retry = { 'retry-after': String(RETRY_S) }
      throw new ApiError(503, 'unavailable', 'Too many large requests at this moment', retry)
    }
    this.#bytes += bytes
    state.heldBytes += bytes
  }

  /** Removes the body of an answered request. */
  release(state: RequestState): void {
    this.#bytes -= state.heldBytes
    state.heldBytes = 0
  }
}
