/**
 * Shares a limited memory between sharers, such as projects. A sharer that already holds memory gets at most half of the
 * memory that the other sharers leave, so that memory always remains for a further sharer.
 */
export class MemoryShares {
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  /**
   * Takes memory for `bytes` bytes. If no memory is held, each caller gets its memory. @returns a function that gives
   * the memory back, or null if the sharer gets no memory now.
   */
  take(sharer: string, bytes: number): (() => void) | null {
    if (!this.#hasRoom(sharer, bytes)) return null
    this.#add(sharer, bytes)
    let isOver = false
    return () => {
      if (!isOver) this.#add(sharer, -bytes)
      isOver = true
    }
  }

  #hasRoom(sharer: string, bytes: number): boolean {
    const own = this.#held.get(sharer) ?? 0
    const others = this.#held.values().reduce((sum, held) => sum + held, 0) - own
    if (own + others === 0) return true
    const left = this.#totalBytes - others
    return own + bytes <= (own === 0 ? left : left / 2)
  }

  #add(sharer: string, bytes: number): void {
    const held = (this.#held.get(sharer) ?? 0) + bytes
    if (held > 0) this.#held.set(sharer, held)
    else this.#held.delete(sharer)
  }
}
