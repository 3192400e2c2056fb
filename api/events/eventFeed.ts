import type { Logger } from 'pino'
import type { EventPosition } from '../../shared/events/eventId.ts'
import type { Pool } from '../../sql/db.ts'
import {
  EVENTS_CHANNEL,
  findEventAt,
  listEvents,
  readStream,
  type StoredEvent,
  type StreamState,
} from '../../sql/events/events.ts'
import { subscribe } from '../../sql/listen.ts'

/** Follows the events of one project from a position on. */
export type EventReader = {
  /**
   * The next events, in order; none at the deadline (performance.now()) or when the reader was ended.
   * @throws when the database is away.
   */
  next(deadlineMs: number): Promise<StoredEvent[]>
  /** Whether nothing more will come: the key changed, or the process is stopping. */
  readonly ended: boolean
  close(): void
}

/** All readers of a process: one connection listens for them, and an event is read once however many wait for it. */
export type EventFeed = {
  /**
   * @param after the last event that is known; null for those to come.
   * @returns a reader, the event it begins behind, and whether events were missed: those behind `after` are no longer
   * kept, or `after` is no event of this stream.
   */
  open(
    projectId: string,
    after: EventPosition | null,
  ): Promise<{ reader: EventReader; begin: EventPosition; missed: boolean }>
  /** Readers that are open. */
  size(): number
  /** Ends all readers: the process is stopping. */
  release(): void
  stop(): Promise<void>
}

const READ_AT_ONCE = 200
/** Events of a project kept for readers who are about to ask. */
const RECENT_MAX = 500

type Reader = { position: bigint; ended: boolean; wake: (() => void) | null }

/** The readers of one project. */
type Channel = {
  readers: Set<Reader>
  /** Events without a gap, ending at `head`. */
  recent: StoredEvent[]
  head: bigint
  /** Something happened that was not read yet. */
  stale: boolean
  reading: Promise<void> | null
}

/** Starts listening. While the connection is away nothing is missed: every channel is read again when it is back. */
export function startEventFeed(databaseUrl: string, pool: Pool, log: Logger): EventFeed {
  const channels = new Map<string, Channel>()
  let released = false
  let isFirst = true
  const wakeAll = (channel: Channel) => {
    for (const reader of channel.readers) reader.wake?.()
  }
  const markStale = (channel: Channel) => {
    channel.stale = true
    wakeAll(channel)
  }
  const end = (channel: Channel) => {
    for (const reader of channel.readers) reader.ended = true
    wakeAll(channel)
  }
  const subscription = subscribe({
    databaseUrl,
    channel: EVENTS_CHANNEL,
    name: 'purser api (events)',
    onNotify: (payload) => {
      const keysChanged = payload.startsWith('!')
      const channel = channels.get(keysChanged ? payload.slice(1) : payload)
      if (channel !== undefined) (keysChanged ? end : markStale)(channel)
    },
    onConnect: () => {
      // A key may have changed unheard while the connection was away: whoever listens has to show his again.
      for (const channel of channels.values()) (isFirst ? markStale : end)(channel)
      // The database may be another one now, restored or promoted: what was read of the former counts no more.
      if (!isFirst) channels.clear()
      isFirst = false
    },
    onError: (error) => log.warn({ err: error }, 'the listener for events lost its connection'),
  })

  /** Reads what is new, once for all readers of the channel. */
  async function refresh(projectId: string, channel: Channel): Promise<void> {
    channel.stale = false
    const events = await listEvents(pool, projectId, { after: channel.head, limit: READ_AT_ONCE })
    if (events.length === READ_AT_ONCE) channel.stale = true
    channel.recent = [...channel.recent, ...events].slice(-RECENT_MAX)
    channel.head = events.at(-1)?.seq ?? channel.head
  }

  async function read(projectId: string, channel: Channel, reader: Reader) {
    if (channel.stale || channel.reading !== null) {
      channel.reading ??= refresh(projectId, channel).finally(() => {
        channel.reading = null
      })
      await channel.reading.catch((error) => {
        channel.stale = true
        throw error
      })
    }
    if (reader.position >= channel.head) return []
    const covered = (channel.recent[0]?.seq ?? channel.head + 1n) <= reader.position + 1n
    const events = covered
      ? channel.recent.filter(({ seq }) => seq > reader.position)
      : await listEvents(pool, projectId, { after: reader.position, limit: READ_AT_ONCE })
    // What is no longer kept cannot be waited for.
    reader.position = events.at(-1)?.seq ?? channel.head
    return events
  }

  return {
    async open(projectId, after) {
      const reader: Reader = { position: 0n, ended: released, wake: null }
      let channel = channels.get(projectId)
      if (channel === undefined) {
        // From here on notifications are seen; what is committed before is counted by readStream.
        channel = { readers: new Set(), recent: [], head: -1n, stale: true, reading: null }
        channels.set(projectId, channel)
      }
      const own = channel
      own.readers.add(reader)
      const close = () => {
        own.readers.delete(reader)
        if (own.readers.size === 0 && channels.get(projectId) === own) channels.delete(projectId)
      }
      try {
        const state = await readStream(pool, projectId, after?.seq ?? null)
        if (own.head === -1n) own.head = state.newest.seq
        // While the listener is away nobody is told: a newcomer sees it first.
        else if (state.newest.seq > own.head) markStale(own)
        const { begin, missed } = await findBegin(pool, projectId, { after, state })
        reader.position = begin.seq
        return { reader: readerOf(projectId, own, reader, close), begin, missed }
      } catch (error) {
        close()
        throw error
      }
    },
    size: () => [...channels.values()].reduce((sum, { readers }) => sum + readers.size, 0),
    release() {
      released = true
      for (const channel of channels.values()) end(channel)
    },
    stop: () => subscription.stop(),
  }

  function readerOf(
    projectId: string,
    channel: Channel,
    reader: Reader,
    close: () => void,
  ): EventReader {
    return {
      get ended() {
        return reader.ended
      },
      async next(deadlineMs) {
        while (!reader.ended) {
          const events = await read(projectId, channel, reader)
          if (events.length > 0) return events
          const leftMs = deadlineMs - performance.now()
          if (leftMs <= 0) return []
          if (channel.stale || reader.ended) continue
          await new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, leftMs)
            reader.wake = () => {
              clearTimeout(timer)
              resolve()
            }
          })
          reader.wake = null
        }
        return []
      },
      close() {
        close()
        reader.ended = true
        reader.wake?.()
      },
    }
  }
}

/** Where a reader begins who knows the stream up to an event. */
async function findBegin(
  pool: Pool,
  projectId: string,
  { after, state }: { after: EventPosition | null; state: StreamState },
): Promise<{ begin: EventPosition; missed: boolean }> {
  const { newest, oldest, knownAt } = state
  if (after === null) return { begin: newest, missed: false }
  const isForeign =
    after.seq > newest.seq ||
    (after.at !== null && knownAt !== null && after.at.getTime() !== knownAt.getTime())
  if (!isForeign) return { begin: after, missed: oldest > after.seq + 1n }
  // An event that a backup did not have. Whatever happened after it is news.
  const { at } = after
  const begin = at === null ? newest : await findEventAt(pool, projectId, { at, oldest })
  return { begin, missed: true }
}
