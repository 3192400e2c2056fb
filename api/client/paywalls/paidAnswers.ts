/** The answers that payments have bought. A payer who lost one gets it again, and nothing runs a second time. */

/** Paid requests that are remembered. */
const REQUESTS_MAX = 10_000
/** Bytes of one stored answer; a longer one is not stored. */
export const ANSWER_MAX_BYTES = 256 * 1024
/** Bytes of all stored answers. */
const STORED_MAX_BYTES = 32 * 1024 * 1024
/** Milliseconds that a request waits for the answer to the same request. The service waits as long for a settlement. */
const WAIT_MS = 30_000

type Stored<Answer> = { answer: Answer; bytes: number }

/** Ends the first of several equal requests. Only the first call counts. */
export type Sale<Answer> = {
  /** The answer was sent. `stored` is null where it is too long to keep. */
  sold(stored: Stored<Answer> | null): void
  /** Nothing was sold: the same request may ask again. */
  unsold(): void
}

export type Asked<Answer> =
  /** The first such request: redeem and serve. */
  | { kind: 'first'; sale: Sale<Answer> }
  | { kind: 'answered'; answer: Answer }
  /** Answered before, and the answer is not stored. */
  | { kind: 'spent' }
  /** The first such request sold nothing, or has no answer yet. */
  | { kind: 'open' }

type Ended<Answer> = Exclude<Asked<Answer>, { kind: 'first' }>
type Entry<Answer> = { stored: Stored<Answer> | null; ended: Promise<Ended<Answer>> }

/** The paid requests of one paywall and their answers. */
export class PaidAnswers<Answer> {
  readonly #entries = new Map<string, Entry<Answer>>()
  #storedBytes = 0

  /** Takes a request, or waits for the answer to the same request before it. */
  async ask(key: string): Promise<Asked<Answer>> {
    const entry = this.#entries.get(key)
    if (entry === undefined) return { kind: 'first', sale: this.#open(key) }
    if (entry.stored !== null) return { kind: 'answered', answer: entry.stored.answer }
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<Ended<Answer>>((resolve) => {
      timer = setTimeout(() => resolve({ kind: 'open' }), WAIT_MS)
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
      // The first promise would hold the answer in memory.
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
