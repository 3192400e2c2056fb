import type { Review } from '../../../shared/mail/review/review.ts'

/** Limits the characters of all cached reviews of held mails (the texts that owners read) together. */
const CHARS_MAX = 4_000_000
/**
 * Sets the number of characters that the cache adds for each piece of a review, because even a piece with a short text
 * takes that much memory.
 */
const PIECE_CHARS = 100

/**
 * Caches the reviews (readable texts) of those mails waiting for approval that people have read most recently. A person
 * reads a long mail page by page, and a new review for each page could take half a second of processor time.
 */
export class RecentReviews {
  readonly #kept = new Map<string, { review: Review; chars: number }>()
  #chars = 0

  /** Returns the cached review of a held mail under this key, or makes and caches the review. */
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
