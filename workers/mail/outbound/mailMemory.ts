/** Mails up to this size are not counted, because all job slots together hold only a few megabytes of such mails. */
export const COUNTED_BYTES = 256 * 1024
/**
 * Limits the total size of the large mails that the process sends at once. The largest mail has 35 MB, and its sending
 * job needs the bytes until the last mail host has answered.
 */
const TOTAL_BYTES = 256 * 1024 * 1024
/** Sets the time in milliseconds after which a refused mail asks again. */
const RETURN_MS = 1_000
/** Sets the milliseconds between two refused mails of one project, so that the refused mails do not return at once. */
const RETURN_SPACING_MS = 200

/** Describes the answer to a mail that asks for memory. A refused mail may ask again after `returnInMs`. */
export type MemoryTurn =
  | { granted: true; leave: () => void }
  | { granted: false; returnInMs: number }

/**
 * Limits the memory that large outbound mails take in one process. Without this limit, 32 large mails of one project
 * would end the process at its memory limit, and so stop the mail of all projects. A project that holds memory gets at
 * most half of the memory that the other projects leave, so that memory always remains for a further project.
 */
export class MailMemory {
  readonly #totalBytes: number
  readonly #held = new Map<string, number>()
  readonly #returns = new Map<string, number>()

  constructor(totalBytes = TOTAL_BYTES) {
    this.#totalBytes = totalBytes
  }

  /** Asks for the memory of one mail of `bytes` bytes. If no memory is held, each mail gets its memory. */
  enter(projectId: string, bytes: number): MemoryTurn {
    if (bytes <= COUNTED_BYTES) return { granted: true, leave: () => {} }
    if (!this.#hasRoom(projectId, bytes)) return this.#refuse(projectId)
    this.#add(projectId, bytes)
    let isOver = false
    return {
      granted: true,
      leave: () => {
        if (!isOver) this.#add(projectId, -bytes)
        isOver = true
      },
    }
  }

  #hasRoom(projectId: string, bytes: number): boolean {
    const own = this.#held.get(projectId) ?? 0
    const others = this.#held.values().reduce((sum, held) => sum + held, 0) - own
    if (own + others === 0) return true
    const left = this.#totalBytes - others
    return own + bytes <= (own === 0 ? left : left / 2)
  }

  #add(projectId: string, bytes: number): void {
    const held = (this.#held.get(projectId) ?? 0) + bytes
    if (held > 0) this.#held.set(projectId, held)
    else this.#held.delete(projectId)
  }

  #refuse(projectId: string): MemoryTurn {
    const nowMs = performance.now()
    for (const [id, atMs] of this.#returns) if (atMs < nowMs) this.#returns.delete(id)
    const lastMs = this.#returns.get(projectId) ?? 0
    const atMs = Math.max(nowMs + RETURN_MS, lastMs + RETURN_SPACING_MS)
    this.#returns.set(projectId, atMs)
    return { granted: false, returnInMs: atMs - nowMs }
  }
}
