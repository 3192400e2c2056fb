/** Sets the shortest time in milliseconds before a refused job asks again for a slot (a place in the worker pool). */
const RETURN_MS = 250
/**
 * Sets the least time in milliseconds between the retries of two refused jobs of the same sharer (such as an inbox).
 * For a refused job with many mails, the time is the number of its mails times MAIL_SPACING_MS instead.
 */
const RETURN_SPACING_MS = 10
const MAIL_SPACING_MS = 1

/**
 * Describes the response to a job that asks for a slot of the worker pool. A job holds a granted slot until the job
 * calls `leave`. A refused job may ask for a slot again after `returnInMs`.
 */
export type ShareTurn =
  | { granted: true; leave: () => void }
  | { granted: false; returnInMs: number }

/**
 * Shares the slots (places for running jobs) of a worker pool between sharers, such as inboxes and sending networks. A
 * sharer may hold at most as many slots as stay free. Therefore a single sharer holds at most half of the slots, and
 * two sharers hold at most a third each. A flood into one inbox thus leaves slots for other inboxes.
 */
export class Shares {
  readonly #slots: number
  readonly #nowMs: () => number
  readonly #held = new Map<string, number>()
  readonly #returns = new Map<string, number>()
  #taken = 0

  constructor(slots: number, nowMs = () => performance.now()) {
    this.#slots = slots
    this.#nowMs = nowMs
  }

  /**
   * Takes a slot of the worker pool for a job of the given sharers, such as inboxes and sending networks. A small job
   * takes only the fraction `part` of a slot.
   */
  enter(sharers: readonly string[], part = 1): ShareTurn {
    const crowded = this.crowded(sharers)
    if (crowded !== null) return { granted: false, returnInMs: this.returnInMs(crowded) }
    this.#count(sharers, part)
    let isIn = true
    return {
      granted: true,
      leave: () => {
        if (isIn) this.#count(sharers, -part)
        isIn = false
      },
    }
  }

  /**
   * Returns the first of the given sharers (such as inboxes) that already holds the maximum number of slots.
   * @returns null if all given sharers (such as inboxes) may take another slot.
   */
  crowded(sharers: readonly string[]): string | null {
    const free = this.#slots - this.#taken
    const isCrowded = (one: string) => (this.#held.get(one) ?? 0) >= Math.max(1, free - 1)
    return sharers.find(isCrowded) ?? null
  }

  #count(sharers: readonly string[], change: number): void {
    this.#taken += change
    for (const sharer of sharers) {
      const held = (this.#held.get(sharer) ?? 0) + change
      if (held > 0) this.#held.set(sharer, held)
      else {
        this.#held.delete(sharer)
        this.#returns.delete(sharer)
      }
    }
  }

  /**
   * Returns the milliseconds after which a refused job of a sharer (such as an inbox) may ask for a slot again. Each
   * further call for the same sharer returns a later time. A job with many mails delays the sharer's next job more than
   * a job with few mails.
   */
  returnInMs(sharer: string, mails = 1): number {
    const nowMs = this.#nowMs()
    const free = this.#returns.get(sharer) ?? 0
    const atMs = Math.max(nowMs + RETURN_MS, free)
    this.#returns.set(sharer, atMs + Math.max(RETURN_SPACING_MS, mails * MAIL_SPACING_MS))
    return atMs - nowMs
  }
}
