/** Lists the columns of a spooled mail in the order in which the insert statement names them. */
export type SpooledColumns = [
  sourceKey: string,
  bytes: Uint8Array,
  envelopeFrom: string,
  inboxes: string,
  remoteIp: string,
  helo: string,
  receivedAtMs: number,
  traceparent: string | null,
  provider: string | null,
]

export type SpoolWork =
  | { file: string; accept: SpooledColumns[] }
  | { file: string; remove: string[] }
  | { close: true }

/** Holds the result of one write to the spool. Null means success, and a text is the error. */
export type SpoolAnswer = string | null

type Waiting = { resolve: () => void; reject: (error: Error) => void }

/**
 * Writes mails to the spool in a separate thread, which starts with the first write. The thread runs the writes one
 * after the other.
 */
export class SpoolWriter {
  readonly #file: string
  #thread: Worker | undefined
  /**
   * Holds the writes to the spool that still wait for their result. The thread that writes sends the results in the
   * order of the writes.
   */
  #waiting: Waiting[] = []

  constructor(file: string) {
    this.#file = file
  }

  /**
   * Stores mails in the spool. The promise resolves when they are on disk. The thread of the spool stores either all
   * mails of a call or none.
   */
  accept = (mails: SpooledColumns[]): Promise<void> =>
    this.#run({ file: this.#file, accept: mails })

  remove = (sourceKeys: string[]): Promise<void> =>
    this.#run({ file: this.#file, remove: sourceKeys })

  /** Closes the file of the spool after all pending writes have ended. */
  async close(): Promise<void> {
    if (this.#thread === undefined) return
    await this.#run({ close: true })
    this.#thread?.terminate()
    this.#thread = undefined
  }

  #run(work: SpoolWork): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.#thread ??= this.#start()
    this.#waiting.push({ resolve, reject })
    this.#thread.postMessage(work)
    return promise
  }

  #start(): Worker {
    const thread = new Worker(new URL('./spoolThread.ts', import.meta.url))
    thread.onmessage = ({ data }: { data: SpoolAnswer }) => {
      const { resolve, reject } = this.#waiting.shift()!
      if (data === null) resolve()
      else reject(new Error(data))
    }
    thread.onerror = ({ message }) => {
      if (this.#thread !== thread) return
      this.#thread = undefined
      thread.terminate()
      const waiting = this.#waiting
      this.#waiting = []
      for (const { reject } of waiting) reject(new Error(`the spool's thread failed: ${message}`))
    }
    return thread
  }
}
