/**
 * Holds the idempotency keys of paid requests whose body the paywall cannot hash. These keys are random, so that a
 * request with another body never gets the right to a resource that another request has paid for. Until the seller has
 * sold a request, a repetition of this request needs the same key.
 */

/**
 * Sets the maximum number of idempotency keys in memory. It equals the number of paid requests whose results the
 * paywall remembers. One key with the hash of its request takes less than 200 bytes, and all keys together take less
 * than 2 MB.
 */
const KEYS_MAX = 10_000

/** Holds the random idempotency keys of paid requests that are not sold yet. A full map drops the oldest key. */
export class OpenKeys {
  readonly #keys = new Map<string, string>()

  /** Returns the idempotency key of a paid request, and tells whether this call is the first to return it. */
  take(request: string): { idempotencyKey: string; isNew: boolean } {
    const known = this.#keys.get(request)
    if (known !== undefined) {
      // The code inserts a used idempotency key again as the newest one. Therefore a full map first drops the keys of
      // requests that nobody repeats.
      this.#keys.delete(request)
      this.#keys.set(request, known)
      return { idempotencyKey: known, isNew: false }
    }
    const [oldest] = this.#keys.keys()
    if (this.#keys.size >= KEYS_MAX && oldest !== undefined) this.#keys.delete(oldest)
    const idempotencyKey = crypto.randomUUID()
    this.#keys.set(request, idempotencyKey)
    return { idempotencyKey, isNew: true }
  }

  /** Forgets the idempotency key of a paid request that is sold, or for which the service has granted nothing. */
  drop(request: string): void {
    this.#keys.delete(request)
  }
}
