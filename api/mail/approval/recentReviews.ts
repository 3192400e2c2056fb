import type { Review } from '../../../shared/mail/review/review.ts'

/** Limits the characters of all kept reviews together. */
const CHARS_MAX = 4_000_000
/** A piece of a review takes about as much memory as this number of characters, also if its text is short. */
const PIECE_CHARS = 100

/**
 * Keeps the reviews of held mails that people have read last. A person reads a long mail page by page, and a review can
 * take half a second of the processor.
 */
export class RecentReviews {
  readonly #kept = new Map<string, { review: Review; chars: number }>()
  #chars = 0

  /** Returns the kept review with this key, or makes and keeps it. */
  async of(key: string, make: () => Promise<Review | null>): Promise<Review | null> {
    const kept = this.#kept.get(key)
    const review = kept?.review ?? (await make())
    if (review === null) return null
    this.#forget(key)
    this.#kept.set(key, { review, chars: kept?.chars ?? key.length + charsOf(review) })
    this.#chars += this.#kept.get(key)!.chars
    for (const oldest of this.#kept.keys()) {
      if (this.#chars <= CHARS_MAX || oldest === key) break
      this.#forget(oldest)
    }
    return review
  }

  #forget(key: string): void {
    this.#chars -= this.#kept.get(key)?.chars ?? 0
    this.#kept.delete(key)
  }
}

const charsOf = ({ pages }: Review): number =>
  pages
    .flat()
    .flatMap(({ pieces }) => pieces)
    .reduce((sum, { text }) => sum + text.length + PIECE_CHARS, 0)
