/** A job that got no slot is tried again after this time at the earliest. */
const RETURN_MS = 250
/**
 * Jobs of one sharer that got no slot are tried again at this distance from each other, plus time for each mail. One
 * such try costs as much as a few mails.
 */
const RETURN_SPACING_MS = 10
const MAIL_SPACING_MS = 1

/**
 * Is the response to a job that asks for a turn. A granted turn lasts until the job calls `leave`. A refused job may
 * ask again after `returnInMs`.
 */
export type ShareTurn =
  | { granted: true; leave: () => void }
  | { granted: false; returnInMs: number }

/**
 * Shares the slots of a pool between sharers, such as inboxes and sending networks. Each sharer may hold as many slots
 * as stay free: a single sharer holds half, and two sharers hold a third each. So a flood into one inbox leaves slots
 * for other inboxes.
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

  /** Takes a slot of the pool, or a part of a slot, for all of these sharers. */
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
   * Returns the first of these sharers that already holds its full share of slots. @returns null if a slot may be
   * taken.
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
   * Returns the milliseconds after which the next refused job of this sharer may try again. The time grows with the
   * mails of the job.
   */
  returnInMs(sharer: string, mails = 1): number {
    const nowMs = this.#nowMs()
    const free = this.#returns.get(sharer) ?? 0
    const atMs = Math.max(nowMs + RETURN_MS, free)
    this.#returns.set(sharer, atMs + Math.max(RETURN_SPACING_MS, mails * MAIL_SPACING_MS))
    return atMs - nowMs
  }
}
