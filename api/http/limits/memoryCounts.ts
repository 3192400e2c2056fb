import type { Logger } from 'pino'

type Options<Count> = {
  everyMs: number
  log: Logger
  /** What is counted, for the log. */
  name: string
  keyOf: (count: Count) => string
  /** Two counts of one key as one. */
  sum: (before: Count, added: Count) => Count
  write: (counts: readonly Count[]) => Promise<void>
}

/** Counts in memory, and writes the counts now and then: what is counted writes no row of its own. */
export class MemoryCounts<Count> {
  readonly #options: Options<Count>
  readonly #timer: ReturnType<typeof setInterval>
  #counts = new Map<string, Count>()

  constructor(options: Options<Count>) {
    this.#options = options
    this.#timer = setInterval(() => void this.flush(), options.everyMs)
  }

  add(count: Count): void {
    const { keyOf, sum } = this.#options
    const key = keyOf(count)
    const before = this.#counts.get(key)
    this.#counts.set(key, before === undefined ? count : sum(before, count))
  }

  /** Writes the counts. While the database is away they are kept. */
  async flush(): Promise<void> {
    if (this.#counts.size === 0) return
    const { log, name, write } = this.#options
    const counts = [...this.#counts.values()]
    this.#counts = new Map()
    try {
      await write(counts)
    } catch (error) {
      log.warn({ err: error }, `counts of ${name} could not be written; will retry`)
      for (const count of counts) this.add(count)
    }
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.flush()
  }
}
