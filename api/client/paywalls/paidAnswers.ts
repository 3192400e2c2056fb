/**
 * Stores the responses for which payers have paid. If a payer lost a paid response, the paywall sends the stored
 * response again, without running the handler a second time.
 */

/** Sets the maximum number of paid requests whose results the paywall keeps in memory. */
const REQUESTS_MAX = 10_000
/**
 * Sets the maximum number of bytes of one stored response to a paid request. The paywall does not store a response that
 * is longer than this limit.
 */
export const ANSWER_MAX_BYTES = 256 * 1024
/** Sets the maximum total of bytes of all stored responses to paid requests. */
const STORED_MAX_BYTES = 32 * 1024 * 1024
/**
 * Sets how many milliseconds a paid request waits for the response to an earlier equal request. This is as long as the
 * service waits for the settlement of a payment.
 */
export const WAIT_MS = 30_000

type Stored<Answer> = { answer: Answer; bytes: number }

/**
 * Lets the caller report how the first of several equal paid requests ended: as sold or as unsold. Only the first
 * report counts.
 */
export type Sale<Answer> = {
  /** Records that the response was sent to the payer. If `stored` is `null`, the response is too long to store. */
  sold(stored: Stored<Answer> | null): void
  /** Records that the payer did not get the paid response. The payer may then send the same paid request again. */
  unsold(): void
  /**
   * Records that the payer has disconnected before the response ended. An equal request may wait for the end of the
   * response, which the handler can still write. If the response never ends, the payer may send the paid request again.
   */
  left(): void
}

export type Asked<Answer> =
  /**
   * Means that the paywall has seen no equal request before. Therefore the caller of `ask` redeems the payment and
   * serves the paid resource.
   */
  | { kind: 'first'; sale: Sale<Answer> }
  | { kind: 'answered'; answer: Answer }
  /** Means that the paywall has already answered an equal request, but has not stored the response. */
  | { kind: 'spent' }
  /** Means that the first of several equal requests was not sold, or has no response yet. */
  | { kind: 'open' }

type Ended<Answer> = Exclude<Asked<Answer>, { kind: 'first' }>
type Entry<Answer> = {
  stored: Stored<Answer> | null
  ended: Promise<Ended<Answer>>
  hasLeft: boolean
}

/** Holds the paid requests of one paywall and their responses. */
export class PaidAnswers<Answer> {
  readonly #entries = new Map<string, Entry<Answer>>()
  #storedBytes = 0

  /** Registers a paid request, or waits for the response to an earlier equal request. */
  async ask(key: string): Promise<Asked<Answer>> {
    const entry = this.#entries.get(key)
    if (entry === undefined) return { kind: 'first', sale: this.#open(key) }
    if (entry.stored !== null) return { kind: 'answered', answer: entry.stored.answer }
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<Ended<Answer>>((resolve) => {
      timer = setTimeout(() => {
        if (entry.hasLeft && this.#entries.get(key) === entry) this.#entries.delete(key)
        resolve({ kind: 'open' })
      }, WAIT_MS)
    })
    try {
      return await Promise.race([entry.ended, late])
    } finally {
      clearTimeout(timer)
    }
  }

  #open(key: string): Sale<Answer> {
    let end: (ended: Ended<Answer>) => void = () => {}
    const entry: Entry<Answer> = {
      stored: null,
      hasLeft: false,
      ended: new Promise((resolve) => {
        end = resolve
      }),
    }
    this.#makeRoom()
    this.#entries.set(key, entry)
    let isOpen = true
    const close = (ended: Ended<Answer>): boolean => {
      if (!isOpen) return false
      isOpen = false
      end(ended)
      // When the paywall drops a stored response, it replaces the old promise by a promise without a response, because
      // the old promise would keep the response in memory.
      entry.ended = Promise.resolve({ kind: 'spent' })
      return this.#entries.get(key) === entry
    }
    return {
      sold: (stored) => {
        const isKnown = close(
          stored === null ? { kind: 'spent' } : { kind: 'answered', answer: stored.answer },
        )
        if (isKnown && stored !== null) this.#store(entry, stored)
      },
      unsold: () => {
        if (close({ kind: 'open' })) this.#entries.delete(key)
      },
      left: () => {
        entry.hasLeft = true
      },
    }
  }

  #makeRoom(): void {
    if (this.#entries.size < REQUESTS_MAX) return
    const [[key, oldest] = []] = this.#entries
    if (key === undefined || oldest === undefined) return
    this.#forget(oldest)
    this.#entries.delete(key)
  }

  #store(entry: Entry<Answer>, stored: Stored<Answer>): void {
    entry.stored = stored
    this.#storedBytes += stored.bytes
    for (const older of this.#entries.values()) {
      if (this.#storedBytes <= STORED_MAX_BYTES) return
      this.#forget(older)
    }
  }

  #forget(entry: Entry<Answer>): void {
    this.#storedBytes -= entry.stored?.bytes ?? 0
    entry.stored = null
  }
}
