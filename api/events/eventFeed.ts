import type { Logger } from 'pino'
import type { EventPosition } from '../../shared/events/eventId.ts'
import { createPause, type Pause } from '../../shared/process/pause.ts'
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
import { ApiError } from '../http/errors.ts'

/** Reads the events of one project, beginning at a given event. */
export type EventReader = {
  /**
   * Returns the next events of the project in order. The list is empty if no event comes before the deadline (a value
   * of performance.now()), or if the event reader has ended.
   * @throws the error of the database if the database is unreachable.
   */
  next(deadlineMs: number): Promise<StoredEvent[]>
  /** Tells whether the event reader has ended, because the API key changed or the process stops. */
  readonly ended: boolean
  close(): void
}

/**
 * Holds the readers of all event streams of a process. One database connection listens for all of them. The process
 * reads each event from the database once for all readers of the project.
 */
export type EventFeed = {
  /**
   * Opens a reader of a project's events.
   * @param after is the last event that the client knows. Null asks only for events from now on.
   * @returns an event reader, and its position `begin`, which is the last event before the first event that it reads.
   * The field `missed` is true if the client may have missed events. This is the case if events after `after` are
   * deleted, or if `after` is no event of this project's stream.
   * @throws {ApiError} 429 if the project has too many event readers.
   */
  open(
    projectId: string,
    after: EventPosition | null,
  ): Promise<{ reader: EventReader; begin: EventPosition; missed: boolean }>
  /** Returns the number of open event readers (event streams and waiting calls). */
  size(): number
  /** Ends all event readers (event streams and waiting calls), because the process stops. */
  release(): void
  stop(): Promise<void>
}

/**
 * Limits how many events, and how many characters of their data, an event reader gets at a time. If a client reads
 * nothing, its event stream keeps the events of the last read in memory. An event of a mail can be 60,000 characters
 * long. Without the second limit, 1,000 such streams would hold 12 GB.
 */
const READ_AT_ONCE = { limit: 200, chars: 64 * 1024 }
/**
 * Limits how many event streams and waiting calls a project may keep open, because each of them holds a connection of
 * this process.
 */
const READERS_MAX = 1_000
/**
 * Limits how many of a project's events, and how many characters of their data, the process keeps in memory. Event
 * readers that are only a few events behind get these events from memory.
 */
const RECENT_MAX = { limit: 500, chars: 1024 * 1024 }

/**
 * Limits how many milliseconds a new event reader waits for the first connection of the event listener. Without this
 * wait, the event reader would end at once, because each new connection of the listener ends all open readers.
 */
const CONNECT_WAIT_MS = 5_000

type Reader = { position: bigint; ended: boolean; pause: Pause }

/** Holds the event readers of one project (such as its open event streams), and the project's newest events. */
type Channel = {
  projectId: string
  readers: Set<Reader>
  /** Holds the newest events of the project without a gap. The last of them has the sequence number `head`. */
  recent: StoredEvent[]
  head: bigint
  /** Tells whether the database may hold events of the project that are newer than the newest one in memory. */
  stale: boolean
  reading: Promise<void> | null
}

type Feed = { pool: Pool; channels: Map<string, Channel>; released: boolean }

/**
 * Starts to listen for events. After a broken database connection, the process reads the new events of each project
 * that has readers, so that no event is lost.
 */
export function startEventFeed(databaseUrl: string, pool: Pool, log: Logger): EventFeed {
  const feed: Feed = { pool, channels: new Map(), released: false }
  const { channels } = feed
  const connected = Promise.withResolvers<void>()
  let isConnected = false
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
      // The API key of a client may have changed while the event listener was not connected. Therefore every client
      // must authenticate again.
      for (const channel of channels.values()) end(channel)
      // After a reconnect, the event listener may be connected to a restored or promoted database. Such a database may
      // lack events that the process keeps in memory, so the process forgets them.
      channels.clear()
      isConnected = true
      connected.resolve()
    },
    onError: (error) => log.warn({ err: error }, 'the event listener lost its connection'),
  })
  return {
    async open(projectId, after) {
      if (!isConnected) await Promise.race([connected.promise, Bun.sleep(CONNECT_WAIT_MS)])
      return open(feed, projectId, after)
    },
    size: () => [...channels.values()].reduce((sum, { readers }) => sum + readers.size, 0),
    release() {
      feed.released = true
      for (const channel of channels.values()) end(channel)
    },
    stop() {
      connected.resolve()
      return subscription.stop()
    },
  }
}

function wakeAll(channel: Channel): void {
  for (const reader of channel.readers) reader.pause.wake()
}

function markStale(channel: Channel): void {
  channel.stale = true
  wakeAll(channel)
}

function end(channel: Channel): void {
  for (const reader of channel.readers) reader.ended = true
  wakeAll(channel)
}

async function open(
  { pool, channels, released }: Feed,
  projectId: string,
  after: EventPosition | null,
): Promise<{ reader: EventReader; begin: EventPosition; missed: boolean }> {
  const reader: Reader = { position: 0n, ended: released, pause: createPause() }
  // From now on, the event reader is notified about every event that a transaction commits. The function `readStream`
  // finds the events that were committed before.
  const channel = channels.get(projectId) ?? newChannel(projectId)
  if (channel.readers.size >= READERS_MAX) {
    const message = `At most ${READERS_MAX} event streams and waits may be open at once`
    throw new ApiError(429, 'rate_limited', message, { 'retry-after': '1' })
  }
  channels.set(projectId, channel)
  channel.readers.add(reader)
  const leave = () => {
    channel.readers.delete(reader)
    if (channel.readers.size === 0 && channels.get(projectId) === channel) {
      channels.delete(projectId)
    }
  }
  try {
    const state = await readStream(pool, projectId, after?.seq ?? null)
    if (channel.head === -1n) channel.head = state.newest.seq
    // If the database already has a newer event than the process, the event listener is behind. The process must then
    // read the events itself. This happens after an outage of the listener, when the query of a new event reader finds
    // new events before the listener does.
    else if (state.newest.seq > channel.head) markStale(channel)
    const { begin, missed } = await findBegin(pool, projectId, { after, state })
    reader.position = begin.seq
    return { reader: toEventReader(pool, channel, reader, leave), begin, missed }
  } catch (error) {
    leave()
    throw error
  }
}

const newChannel = (projectId: string): Channel => ({
  projectId,
  readers: new Set(),
  recent: [],
  head: -1n,
  stale: true,
  reading: null,
})

function toEventReader(
  pool: Pool,
  channel: Channel,
  reader: Reader,
  leave: () => void,
): EventReader {
  return {
    get ended() {
      return reader.ended
    },
    async next(deadlineMs) {
      while (!reader.ended) {
        const events = await read(pool, channel, reader)
        if (events.length > 0) return events
        const leftMs = deadlineMs - performance.now()
        if (leftMs <= 0) return []
        if (channel.stale || reader.ended || reader.position < channel.head) continue
        await reader.pause.sleep(leftMs)
      }
      return []
    },
    close() {
      leave()
      reader.ended = true
      reader.pause.wake()
    },
  }
}

async function read(pool: Pool, channel: Channel, reader: Reader): Promise<StoredEvent[]> {
  if (channel.stale || channel.reading !== null) {
    channel.reading ??= refresh(pool, channel).finally(() => {
      channel.reading = null
    })
    await channel.reading.catch((error) => {
      channel.stale = true
      throw error
    })
  }
  // Another event reader may fetch newer events during the query below, and then `channel.head` is higher.
  const { head } = channel
  if (reader.position >= head) return []
  const isAhead = ({ seq }: StoredEvent) => seq > reader.position
  const covered = (channel.recent[0]?.seq ?? head + 1n) <= reader.position + 1n
  const { events } = covered
    ? { events: within(channel.recent.filter(isAhead), READ_AT_ONCE) }
    : await listEvents(pool, channel.projectId, { after: reader.position, ...READ_AT_ONCE })
  // An event reader skips events that the database has already deleted. If the database has deleted all events after
  // the reader's position, the position moves to the newest event that was known before the query.
  reader.position = events.at(-1)?.seq ?? head
  return events
}

/** Reads the new events of a project once, and passes these events to all event readers of the project. */
async function refresh(pool: Pool, channel: Channel): Promise<void> {
  channel.stale = false
  const wanted = { after: channel.head, ...READ_AT_ONCE }
  const { events, hasMore } = await listEvents(pool, channel.projectId, wanted)
  if (hasMore) channel.stale = true
  const recent = [...channel.recent, ...events]
  channel.recent = within(recent.toReversed(), RECENT_MAX).toReversed()
  channel.head = events.at(-1)?.seq ?? channel.head
}

/**
 * Returns the first events of a list that together stay within the limits on their number and their characters. The
 * result has at least one event, unless the list is empty.
 */
function within(events: StoredEvent[], { limit, chars }: { limit: number; chars: number }) {
  let total = 0
  let count = 0
  for (const { size } of events.slice(0, limit)) {
    total += size
    if (total > chars && count > 0) break
    count++
  }
  return events.slice(0, count)
}

/** Finds the event from which a client continues to read. The value `after` is the last event that the client knows. */
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
  // A restored backup may lack the last event that the client knows. In this case, the client continues with the first
  // event that is later than this known event, because the client has seen no newer event.
  const { at } = after
  const begin = at === null ? newest : await findEventAt(pool, projectId, { at, oldest })
  return { begin, missed: true }
}
