import { ApiError } from './errors.ts'
import type { RequestState } from './requestState.ts'

/** Bytes of bodies in memory at the same time; decoded and on their way to Postgres they take several times as much. */
const HELD_MAX_BYTES = 256 * 1024 * 1024
const RETRY_S = 2

/** Counts the bodies that are being served: many large ones at once must not exhaust the memory of the process. */
export class HeldBodies {
  #bytes = 0

  /** More bytes of a request's body were read. @throws {ApiError} 503 when all bodies together grow too large. */
  hold(state: RequestState, bytes: number): void {
    if (this.#bytes + bytes > HELD_MAX_BYTES) {
      const retry = { 'retry-after': String(RETRY_S) }
      throw new ApiError(503, 'unavailable', 'Too many large requests at this moment', retry)
    }
    this.#bytes += bytes
    state.heldBytes += bytes
  }

  /** A request was answered. */
  release(state: RequestState): void {
    this.#bytes -= state.heldBytes
    state.heldBytes = 0
  }
}
