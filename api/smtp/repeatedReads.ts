import type { Logger } from 'pino'
import { createPause } from '../../shared/process/pause.ts'

const AGAIN_MS = 1_000

/**
 * Runs database reads one after the other, and repeats a failed read until it succeeds. PostgreSQL notifies the
 * listener of each change only once. Without the repetition, the listener's local copy would stay outdated until the
 * next connection.
 */
export class RepeatedReads {
  readonly #log: Pick<Logger, 'warn'>
  readonly #failed: string
  readonly #pause = createPause()
  #stopping = false
  #turn: Promise<void> = Promise.resolve()

  /** @param failed is the text of the log line about a database read that failed. */
  constructor(log: Pick<Logger, 'warn'>, failed: string) {
    this.#log = log
    this.#failed = failed
  }

  /** Runs a database read after all earlier reads have succeeded. */
  add(read: () => Promise<void>): void {
    this.#turn = this.#turn.then(() => this.#untilDone(read))
  }

  async #untilDone(read: () => Promise<void>): Promise<void> {
    for (let isFirst = true; !this.#stopping; isFirst = false) {
      try {
        return await read()
      } catch (error) {
        if (isFirst) this.#log.warn({ err: error }, this.#failed)
      }
      if (!this.#stopping) await this.#pause.sleep(AGAIN_MS)
    }
  }

  /** Waits for the running database read, and drops all later reads. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#pause.wake()
    await this.#turn
  }
}
