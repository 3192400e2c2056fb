import { workOfGreediest } from '../../../shared/fair/greediest.ts'
import { Pace } from '../../../shared/fair/pace.ts'
import { networkSubject } from '../../../shared/http/networkSubject.ts'
import { ApiError } from '../errors.ts'
import { partyOfState, type RequestState } from '../requestState.ts'

const MB = 1024 * 1024
/**
 * Sets the maximum number of bytes of large request bodies in memory. A body takes several times its own size of
 * memory, because the service decodes it and encodes it again for PostgreSQL.
 */
const HELD_MAX_BYTES = 256 * MB
/** Limits the bytes of memory that the request bodies of one project or platform key may take. */
const CALLER_MAX_BYTES = 96 * MB
/**
 * Limits the bytes of memory that the request bodies of one network may take. The limit for one project is not enough,
 * because several projects may call from the same network.
 */
const NETWORK_MAX_BYTES = 192 * MB
/** Sets the size in bytes up to which the service never refuses a request body for lack of memory. */
const SMALL_BODY_BYTES = 64 * 1024
const RETRY_S = 2
/**
 * Limits the bytes per second at which the large request bodies of one caller may arrive. Without this limit, twelve
 * connections that sent 32 MB each blocked the event loop for 50 ms at a time.
 */
const RATE = { bytesPerS: 32 * MB, burstS: 0.25 }

/**
 * Describes an HTTP request body that the process holds in memory. The function `end` stops the transfer of a body that
 * is still arriving. Null means that the body has arrived completely.
 */
type Held = { sharers: readonly string[]; bytes: number; end: ((error: ApiError) => void) | null }

/**
 * Shares the memory for large request bodies between callers. If this memory is full, the service chooses the caller
 * that holds the most bytes. It drops this caller's largest body that is still arriving. Therefore the service can
 * serve a new caller even if many other callers have used up their shares of the memory.
 */
export class HeldBodies {
  readonly #pace = new Pace(RATE)
  #bytes = 0
  readonly #shares = new Map<string, number>()
  readonly #held = new Map<RequestState, Held>()

  /**
   * Adds bytes of a request's body to the count of body bytes in memory.
   * @param end is called with an error if the service must drop the request body to make room for other bodies.
   * @returns the milliseconds to wait before the service reads the next bytes of the request body.
   * @throws {ApiError} 503 if the caller already occupies its fair part of the memory.
   */
  hold(state: RequestState, bytes: number, end: (error: ApiError) => void): number {
    const held = this.#held.get(state)
    state.bodyBytes += bytes
    if (state.bodyBytes <= SMALL_BODY_BYTES) return 0
    const own = held ?? { sharers: sharersOf(state), bytes: 0, end }
    this.#held.set(state, own)
    this.#add(own, state.bodyBytes - own.bytes)
    const [caller, network] = own.sharers as [string, string]
    const isGreedy =
      this.#share(caller) > CALLER_MAX_BYTES || this.#share(network) > NETWORK_MAX_BYTES
    if (isGreedy) throw crowded()
    while (this.#bytes > HELD_MAX_BYTES) {
      const arriving = [...this.#held.values()].filter((one) => one.end !== null)
      const victim = workOfGreediest(arriving, {
        held: ({ sharers }) => this.#share(sharers[0]!),
        rank: (one) => one.bytes,
      })
      if (victim === null || this.#share(victim.sharers[0]!) <= this.#share(caller)) throw crowded()
      victim.end?.(crowded())
      victim.end = null
      this.#add(victim, -victim.bytes)
    }
    return this.#pace.take([caller], bytes)
  }

  /**
   * Marks a request body as complete. The service can no longer drop it to make room, because it is already answering
   * the request.
   */
  complete(state: RequestState): void {
    const held = this.#held.get(state)
    if (held !== undefined) held.end = null
  }

  /** Subtracts the body of an answered request from the count of body bytes in memory. */
  release(state: RequestState): void {
    const held = this.#held.get(state)
    if (held !== undefined) this.#add(held, -held.bytes)
    this.#held.delete(state)
  }

  #share = (sharer: string): number => this.#shares.get(sharer) ?? 0

  #add(held: Held, bytes: number): void {
    held.bytes += bytes
    this.#bytes += bytes
    for (const sharer of held.sharers) {
      const share = this.#share(sharer) + bytes
      if (share > 0) this.#shares.set(sharer, share)
      else this.#shares.delete(sharer)
    }
  }
}

const crowded = (): ApiError =>
  new ApiError(503, 'unavailable', 'You send too many large requests at once', {
    'retry-after': String(RETRY_S),
  })

/** Returns the two names under which the memory for a request body is counted: the caller, and the caller's network. */
function sharersOf(state: RequestState): [string, string] {
  const network = `network ${networkSubject(state.clientAddress)}`
  const party = partyOfState(state)
  return [party === null ? `stranger ${network}` : `caller ${party}`, network]
}
