import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { MemoryShares } from '../../../shared/fair/memoryShares.ts'
import { ApiError } from '../errors.ts'

/** Limits the total bytes of large contents (such as mails) that the process holds for its responses. */
const TOTAL_BYTES = 256 * 1024 * 1024
/** Limits the total bytes of large contents (such as mails) that requests hold only while their handlers run. */
const WORKING_BYTES = 128 * 1024 * 1024
/**
 * Limits the time in milliseconds in which a client must read a content (such as a mail). Otherwise a client that reads
 * single bytes would occupy memory for hours. The time is enough for 35 MB at half a megabit per second.
 */
const READ_MAX_MS = 10 * 60_000
/**
 * Sets after how many milliseconds without a read the process may drop a content (such as a mail) if another request
 * needs the memory. Without this time, four projects that read nothing would leave only 11 MB for all others. The time
 * must be long, because the connection's buffer holds several megabytes. While it is full, a client at half a megabit
 * per second may read nothing for 100 seconds.
 */
const STALLED_MS = 3 * 60_000
/**
 * Sets the size in bytes up to which the process does not count a content (such as a mail) against the memory limit.
 */
export const SMALL_BYTES = 256 * 1024
/** Sets the number of bytes that a stream hands to the connection at a time. */
const PIECE_BYTES = 64 * 1024
const RETRY_S = 2
/**
 * Sets how many requests that change data and have a large response may run at once: `total` in all projects, and
 * `perSharer` in one project. Such a request counts against the memory limit only when its response is ready, so too
 * many at once would exceed the limit.
 */
const LARGE_CHANGES = { total: 16, perSharer: 4 }

/** Describes a content (such as a mail) that a client is reading. */
type Stream = { projectId: string; size: number; waitsSinceMs: number; abort: () => void }

/** Describes a response that grows while several calls run, such as the response to an MCP batch. */
export type GrowingAnswer = {
  /**
   * Takes memory for the result of one call. @param must tells that the response contains this result even without free
   * memory.
   * @returns false if the result does not fit and must be left out.
   */
  add(bytes: number, must: boolean): boolean
  /** Returns the body of the response, whose memory counts as occupied until the client has read it. */
  body(content: Buffer): ReadableStream<Uint8Array>
  /** Frees the memory of the response if `body` was not called, for example after an error. */
  release(): void
}

/**
 * Shares the memory for large contents, such as original mails and attachments, between projects, because a client that
 * reads slowly or not at all keeps a content in memory. Without a limit, 27 such connections of one key would end the
 * process.
 */
export class HeldAnswers {
  readonly #shares: MemoryShares
  readonly #working = new MemoryShares(WORKING_BYTES)
  /**
   * Counts how much memory in `#shares` (all counted memory) is occupied by responses to requests that have changed
   * data. These responses have a separate count, because the service cannot refuse them.
   */
  readonly #changed: MemoryShares
  readonly #largeChanges = new FairTurns(LARGE_CHANGES)
  readonly #streams = new Set<Stream>()
  readonly #readMaxMs: number
  readonly #nowMs: () => number
  /** Gives back the memory of a response that nobody has read and that the process has dropped. */
  readonly #dropped = new FinalizationRegistry<() => void>((end) => end())

  constructor({
    totalBytes = TOTAL_BYTES,
    readMaxMs = READ_MAX_MS,
    nowMs = () => performance.now(),
  } = {}) {
    this.#shares = new MemoryShares(totalBytes)
    this.#changed = new MemoryShares(totalBytes)
    this.#readMaxMs = readMaxMs
    this.#nowMs = nowMs
  }

  /**
   * Holds memory for a content (such as a mail) while `work` runs. @throws {ApiError} 503 if the project already uses
   * all the memory that it may use.
   */
  async during<Result>(projectId: string, bytes: number, work: () => Promise<Result>) {
    const release = bytes <= SMALL_BYTES ? () => {} : this.#working.take(projectId, bytes)
    if (release === null) throw crowded()
    try {
      return await work()
    } finally {
      release()
    }
  }

  /**
   * Refuses a request that changes data if the project's clients have not read the responses to its earlier changes,
   * and these responses occupy all the memory that the project may use. @throws {ApiError} 503 in this case.
   */
  admitChange(projectId: string): void {
    const occupies = this.#changed.heldBy(projectId) > 0
    if (occupies && !this.#changed.hasRoom(projectId, 0)) throw crowded()
  }

  /**
   * Runs a request that changes data and whose response may be large, such as a whole thread. Only a few such requests
   * of a project run at the same time. @throws {ApiError} 503 before the change if the clients of the project leave too
   * many responses unread.
   */
  async change<Result>(projectId: string, make: () => Promise<Result>): Promise<Result> {
    const leave = await this.#largeChanges.enter(projectId)
    try {
      this.admitChange(projectId)
      return await make()
    } finally {
      leave()
    }
  }

  /**
   * Returns the body of the response to a request that changes data, and counts its memory until the client has read
   * it.
   */
  changed(projectId: string, bytes: Buffer): ReadableStream<Uint8Array> {
    return this.#stream(projectId, bytes, this.#chargeChange(projectId, bytes.length))
  }

  /**
   * Counts the memory of a response to a request that changes data, even if the project then occupies more memory than
   * it may use.
   */
  #chargeChange(projectId: string, bytes: number): () => void {
    const releases = [this.#shares, this.#changed].map((one) => one.charge(projectId, bytes))
    return () => {
      for (const release of releases) release()
    }
  }

  /**
   * Reads a content (such as a mail), and holds its memory until the client has read the response. @param size is the
   * size of the content in bytes. @throws {ApiError} 503 if the project already uses all the memory that it may use.
   */
  async body(
    projectId: string,
    size: number,
    read: () => Promise<Buffer>,
  ): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
    const release = size <= SMALL_BYTES ? () => {} : this.#hold(projectId, size)
    try {
      const bytes = await read()
      if (bytes.length > SMALL_BYTES) return this.#stream(projectId, bytes, release)
      release()
      return new Uint8Array(bytes)
    } catch (error) {
      release()
      throw error
    }
  }

  /**
   * Returns a response that grows while several calls of an MCP batch run. The results that may be left out get memory
   * only within `maxBytes`, and only if memory is free for the project.
   */
  grow(projectId: string, maxBytes: number): GrowingAnswer {
    const releases: (() => void)[] = []
    let held = 0
    let isOver = false
    const release = () => {
      isOver = true
      for (const one of releases.splice(0)) one()
    }
    return {
      add: (part, must) => {
        // A cancelled call may return its result after the response was made. The response does not contain this
        // result, so the result takes no memory.
        if (isOver) return true
        if (!must && held + part > maxBytes) return false
        const one = must ? this.#chargeChange(projectId, part) : this.#holdIfFree(projectId, part)
        if (one === null) return false
        releases.push(one)
        held += part
        return true
      },
      body: (content) => this.#stream(projectId, content, release, held),
      release,
    }
  }

  /**
   * Takes memory for a content (such as a mail). If too little memory is free, the process drops contents whose clients
   * have stopped reading. It begins with the project that holds the most memory. It drops nothing if the new content
   * would still not fit.
   * @returns null if the content does not fit.
   */
  #holdIfFree(projectId: string, size: number): (() => void) | null {
    const stalled = this.#stalled()
    const freed = new Map<string, number>()
    for (const one of stalled) freed.set(one.projectId, (freed.get(one.projectId) ?? 0) + one.size)
    if (!this.#shares.hasRoom(projectId, size, freed)) return null
    for (;;) {
      const release = this.#shares.take(projectId, size)
      if (release !== null) return release
      const next = stalled.shift()
      if (next === undefined) return null
      next.abort()
    }
  }

  /** Takes memory for the content of a response. @throws {ApiError} 503 if too little memory is free. */
  #hold(projectId: string, size: number): () => void {
    const release = this.#holdIfFree(projectId, size)
    if (release === null) throw crowded()
    return release
  }

  /**
   * Returns the contents (such as mails) whose clients have stopped reading. Those of the project that holds the most
   * memory come first.
   */
  #stalled(): Stream[] {
    const heldBy = ({ projectId }: Stream) => this.#shares.heldBy(projectId)
    return [...this.#streams]
      .filter(({ waitsSinceMs }) => this.#nowMs() - waitsSinceMs >= STALLED_MS)
      .sort((a, b) => heldBy(b) - heldBy(a) || a.waitsSinceMs - b.waitsSinceMs)
  }

  #stream(
    projectId: string,
    content: Buffer,
    release: () => void,
    size = content.length,
  ): ReadableStream<Uint8Array> {
    let bytes = content
    let at = 0
    const end = () => {
      clearTimeout(timer)
      this.#streams.delete(state)
      // The stream object may outlive the response, so this function drops the stream's reference to the bytes of the
      // response.
      bytes = EMPTY
      release()
    }
    const abort = () => {
      end()
      controls?.deref()?.error(new Error('the client read too slowly'))
    }
    const state: Stream = { projectId, size, waitsSinceMs: this.#nowMs(), abort }
    this.#streams.add(state)
    const timer = setTimeout(abort, this.#readMaxMs)
    timer.unref()
    // A strong reference would keep a dropped response in memory until the response's time limit ends.
    let controls: WeakRef<ReadableStreamDefaultController<Uint8Array>> | undefined
    const stream = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          controls = new WeakRef(controller)
        },
        pull: (controller) => {
          state.waitsSinceMs = this.#nowMs()
          if (at < bytes.length) {
            // The connection gets a copy of each piece of the response, because the connection may keep the piece after
            // the stream has ended.
            controller.enqueue(new Uint8Array(bytes.subarray(at, at + PIECE_BYTES)))
            at += PIECE_BYTES
            return
          }
          end()
          controller.close()
        },
        cancel: end,
      },
      { highWaterMark: 0 },
    )
    this.#dropped.register(stream, end)
    return stream
  }
}

const EMPTY = Buffer.alloc(0)

function crowded(): ApiError {
  const message = 'Too many large contents are read at once'
  return new ApiError(503, 'unavailable', message, { 'retry-after': String(RETRY_S) })
}
