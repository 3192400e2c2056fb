import { MemoryShares } from '../../../shared/fair/memoryShares.ts'

/**
 * Sets the size in bytes up to which mails do not count toward the memory limit, because all job slots together hold
 * only a few megabytes of such mails.
 */
export const COUNTED_BYTES = 256 * 1024
/**
 * Limits the total size of the large mails that the process sends at once. The largest mail has 35 MB, and its sending
 * job needs the bytes until the last mail host has answered.
 */
const TOTAL_BYTES = 256 * 1024 * 1024
/** Sets the milliseconds after which the service retries a mail for which no memory was available. */
const RETURN_MS = 1_000
/**
 * Sets the milliseconds between the retries of two mails of one project for which no memory was available, so that they
 * do not ask for memory at the same moment.
 */
const RETURN_SPACING_MS = 200

/** Tells whether a mail may use memory now. If it may not, the service retries the mail after `returnInMs`. */
export type MemoryTurn =
  | { granted: true; leave: () => void }
  | { granted: false; returnInMs: number }

/**
 * Limits the memory that large outbound mails take in one process. Without this limit, 32 large mails of one project
 * would end the process at its memory limit, and so stop the mail of all projects.
 */
export class MailMemory {
  readonly #shares: MemoryShares
  readonly #returns = new Map<string, number>()

  constructor(totalBytes = TOTAL_BYTES) {
    this.#shares = new MemoryShares(totalBytes)
  }

  /** Reserves memory for one mail of `bytes` bytes, if enough memory is available. */
  enter(projectId: string, bytes: number): MemoryTurn {
    if (bytes <= COUNTED_BYTES) return { granted: true, leave: () => {} }
    const leave = this.#shares.take(projectId, bytes)
    if (leave !== null) return { granted: true, leave }
    const nowMs = performance.now()
    for (const [id, atMs] of this.#returns) if (atMs < nowMs) this.#returns.delete(id)
    const lastMs = this.#returns.get(projectId) ?? 0
    const atMs = Math.max(nowMs + RETURN_MS, lastMs + RETURN_SPACING_MS)
    this.#returns.set(projectId, atMs)
    return { granted: false, returnInMs: atMs - nowMs }
  }
}
