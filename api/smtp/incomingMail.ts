import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../shared/errorCode.ts'
import { workOfGreediest } from '../../shared/fair/greediest.ts'
import type { Pace } from '../../shared/fair/pace.ts'
import type { OpenConnection } from './connectionLimits.ts'

const MB = 1024 * 1024
/**
 * Sets the largest size in bytes of an incoming message that stays in memory. The listener never drops such a small
 * message to make room for others.
 */
const SMALL_BYTES = 64 * 1024
/**
 * Limits the bytes on disk of messages that are still arriving. The field `allBytes` applies to all connections
 * together, and `sharerBytes` to one network or inbox. The field `loadedBytes` limits the bytes of complete large
 * messages in memory, each of which waits there until the spool has stored the message. Without this limit, 29 messages
 * of 35 MB that end at the same moment took a gigabyte.
 */
const BOUNDS = { allBytes: 1024 * MB, sharerBytes: 256 * MB, loadedBytes: 150 * MB }
/**
 * Sets the time and the speed below which a message is too slow. A message that arrives at a lower speed after half a
 * minute is an attack, or will never be complete.
 */
const GRACE_MS = 30_000
const LEAST_BYTES_PER_S = 1024

/**
 * Holds the prefix of the folder names for incomplete messages. The name ends with the process id of the listener. If a
 * listener was killed, the next start of a listener removes its folder. Listeners in several containers may have the
 * same process id and share a folder. Therefore each file has a random name, and a listener makes the folder again after
 * another one has removed it. An open file stays usable without its name.
 */
const FOLDER = 'incoming-'

/** Describes one SMTP message that is still arriving. */
export type Incoming = {
  /**
   * Adds the next bytes of the incoming message. @returns false if the sender's networks or the receiving inboxes
   * already occupy too many bytes.
   */
  write(chunk: Buffer): Promise<boolean>
  /** Returns all bytes of the incoming message. */
  bytes(): Promise<Buffer>
  /** Frees the memory and the disk space of the incoming message. */
  discard(): Promise<void>
}

type Held = {
  /**
   * Names the network or the inboxes in whose byte limits the message counts: the narrowest network of the sender, or
   * the receiving inboxes.
   */
  holders: readonly string[]
  bytes: number
  startedMs: number
  connection: OpenConnection
}

/**
 * Holds SMTP messages that are still arriving, small ones in memory and larger ones on disk. If all of them together
 * exceed their limit, the network or inbox with the most bytes loses its slowest message. This makes room for mail of
 * other senders.
 */
export class IncomingMails {
  readonly #folder: string
  readonly #held = new Set<Held>()
  #loadedBytes = 0
  readonly #waiting: { readonly bytes: number; readonly start: () => void }[] = []
  readonly #pace: Pace
  readonly #bounds: typeof BOUNDS

  constructor(dataDir: string, pace: Pace, bounds = BOUNDS) {
    this.#pace = pace
    this.#bounds = bounds
    this.#folder = join(dataDir, `${FOLDER}${process.pid}`)
    for (const name of readdirSync(dataDir)) {
      const isOwn = name === `${FOLDER}${process.pid}`
      if (isOwn || (name.startsWith(FOLDER) && !isRunning(Number(name.slice(FOLDER.length))))) {
        rmSync(join(dataDir, name), { recursive: true, force: true })
      }
    }
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
  }

  /**
   * Begins to receive a message. Its bytes count in the limits of the networks or inboxes of its connection.
   * @param inboxes are the inboxes to which the message is addressed.
   * @param alwaysBytes is the size up to which the function never refuses the message for lack of disk space.
   * @param isPaced tells whether the limit on bytes a second applies. The value is false if waiting would only hold
   * memory longer, or would slow the mail of other inboxes.
   */
  begin(
    inboxes: Iterable<string>,
    connection: OpenConnection,
    { isPaced = true, alwaysBytes = 0 } = {},
  ): Incoming {
    const held: Held = {
      holders: connection.sharers.filter(({ factor }) => factor === 1).map(({ name }) => name),
      bytes: 0,
      startedMs: performance.now(),
      connection,
    }
    const paced = [...connection.sharers.map(({ name }) => name), ...inboxes]
    const path = join(this.#folder, randomUUID())
    let file: FileHandle | null = null
    let chunks: Buffer[] = []
    let size = 0
    let loaded = 0
    const hasShare = (): boolean => {
      this.#evict(held)
      if (size <= alwaysBytes) return true
      return held.holders.some(
        (holder) =>
          this.#sum(({ holders }) => holders.includes(holder)) <= this.#bounds.sharerBytes,
      )
    }
    return {
      write: async (chunk) => {
        size += chunk.length
        connection.activeMs = performance.now()
        const ms = connection.activeMs - held.startedMs
        if (ms > GRACE_MS && (size / ms) * 1000 < LEAST_BYTES_PER_S) {
          connection.hangUp('4.4.2 The message arrives too slowly')
        }
        chunks.push(chunk)
        if (size <= SMALL_BYTES) return true
        const waitMs = isPaced ? this.#pace.take(paced, size - held.bytes) : 0
        this.#held.add(held)
        held.bytes = size
        if (!hasShare()) return false
        file ??= await this.#create(path)
        const written = chunks
        chunks = []
        await file.writev(written)
        if (waitMs > 0) await Bun.sleep(waitMs)
        return true
      },
      bytes: async () => {
        const rest = Buffer.concat(chunks)
        if (file === null) return rest
        // The listener passes the received bytes to the thread of the spool in shared memory. Therefore it need not
        // copy them.
        await this.#load(size)
        loaded = size
        const whole = Buffer.from(new SharedArrayBuffer(size))
        const written = size - rest.length
        for (let at = 0; at < written; ) {
          const { bytesRead } = await file.read(whole, at, written - at, at)
          if (bytesRead === 0) throw new Error('the file of an unfinished message is cut off')
          at += bytesRead
        }
        rest.copy(whole, written)
        return whole
      },
      discard: async () => {
        this.#held.delete(held)
        chunks = []
        this.#unload(loaded)
        loaded = 0
        const open = file
        file = null
        await open?.close()
        if (open !== null) await rm(path, { force: true })
      },
    }
  }

  async #create(path: string): Promise<FileHandle> {
    const create = () => open(path, 'wx+', 0o600)
    try {
      return await create()
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
    }
    await mkdir(this.#folder, { mode: 0o700, recursive: true })
    return await create()
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /**
   * Waits until the memory has room for a message. The messages get room in the order of their calls. Otherwise a flood
   * of smaller messages could overtake a message of 35 MB for ever. If the memory holds no other large message, a
   * message of any size gets room.
   */
  async #load(bytes: number): Promise<void> {
    if (this.#waiting.length === 0 && this.#fits(bytes)) this.#loadedBytes += bytes
    else await new Promise<void>((start) => this.#waiting.push({ bytes, start }))
  }

  #fits(bytes: number): boolean {
    return this.#loadedBytes === 0 || this.#loadedBytes + bytes <= this.#bounds.loadedBytes
  }

  #unload(bytes: number): void {
    this.#loadedBytes -= bytes
    while (this.#waiting.length > 0 && this.#fits(this.#waiting[0]!.bytes)) {
      const { bytes: next, start } = this.#waiting.shift()!
      this.#loadedBytes += next
      start()
    }
  }

  #sum(of: (held: Held) => boolean): number {
    let sum = 0
    for (const held of this.#held) if (of(held)) sum += held.bytes
    return sum
  }

  #evict(newcomer: Held): void {
    while (this.#sum(() => true) > this.#bounds.allBytes) {
      const shares = new Map<string, number>()
      for (const { holders, bytes } of this.#held) {
        for (const holder of holders) shares.set(holder, (shares.get(holder) ?? 0) + bytes)
      }
      const slowest = workOfGreediest(this.#held, {
        held: ({ holders }) => Math.max(...holders.map((holder) => shares.get(holder)!)),
        rank: (held) => (held === newcomer ? Number.NEGATIVE_INFINITY : -rateOf(held)),
      })
      if (slowest === null || slowest === newcomer) return
      this.#held.delete(slowest)
      slowest.connection.hangUp('4.3.1 Too much mail in flight, try again later')
    }
  }
}

const rateOf = ({ bytes, startedMs }: Held): number =>
  bytes / Math.max(1, performance.now() - startedMs)

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return errorCode(error) === 'EPERM'
  }
}
