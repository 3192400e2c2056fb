import type { Logger } from 'pino'

type Options<Count> = {
  everyMs: number
  log: Logger
  /** Names the kind of the counted events in log lines, for example `requests`. */
  name: string
  keyOf: (count: Count) => string
  /** Returns the sum of two counts with the same key, for example of the same project. */
  sum: (before: Count, added: Count) => Count
  write: (counts: readonly Count[]) => Promise<void>
}

/**
 * Counts events, such as requests, in memory, and writes the counts to the database at intervals. Therefore the service
 * need not write a database row for each request.
 */
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

  /**
   * Writes the counts of events to the database. While the database is unreachable, the process keeps the counts in
   * memory.
   */
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
