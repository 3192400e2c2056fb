/**
 * Shares a limited memory between sharers, such as projects. A sharer that already holds memory gets at most half of
 * the memory that the other sharers leave, so that memory always remains for another sharer.
 */
export class MemoryShares {
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()

  constructor(totalBytes: number) {
    this.#totalBytes = totalBytes
  }

  /**
   * Reserves `bytes` bytes of memory. If no sharer (such as a project) holds memory, the function grants a request of
   * any size. @returns a function that gives the memory back. Null means that the sharer gets no memory now.
   */
  take(sharer: string, bytes: number): (() => void) | null {
    return this.hasRoom(sharer, bytes) ? this.charge(sharer, bytes) : null
  }

  /**
   * Counts memory that a sharer (such as a project) already uses, even if the sharer then holds more than the limit
   * allows. @returns a function that gives the memory back.
   */
  charge(sharer: string, bytes: number): () => void {
    this.#add(sharer, bytes)
    let isOver = false
    return () => {
      if (!isOver) this.#add(sharer, -bytes)
      isOver = true
    }
  }

  /**
   * Tells whether a sharer (such as a project) would get `bytes` bytes of memory. @param freed maps sharers to the
   * bytes that they would first give back.
   */
  hasRoom(sharer: string, bytes: number, freed: ReadonlyMap<string, number> = new Map()): boolean {
    const left = (one: string, held: number) => held - (freed.get(one) ?? 0)
    const own = left(sharer, this.heldBy(sharer))
    const all = [...this.#held].reduce((sum, [one, held]) => sum + left(one, held), 0)
    return this.#fits(bytes, own, all - own)
  }

  /** Returns the bytes of memory that a sharer (such as a project) holds. */
  heldBy(sharer: string): number {
    return this.#held.get(sharer) ?? 0
  }

  #fits(bytes: number, own: number, others: number): boolean {
    if (own + others === 0) return true
    const left = this.#totalBytes - others
    return own + bytes <= (own === 0 ? left : left / 2)
  }

  #add(sharer: string, bytes: number): void {
    const held = this.heldBy(sharer) + bytes
    if (held > 0) this.#held.set(sharer, held)
    else this.#held.delete(sharer)
  }
}
