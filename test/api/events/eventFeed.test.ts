/**
 * Tests the event readers of one process without HTTP: their positions in the stream, gaps, shared reads, errors, and
 * the end of a reader.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type EventFeed, type EventReader, startEventFeed } from '../../../api/events/eventFeed.ts'
import type { EventPosition } from '../../../shared/events/eventId.ts'
import type { Pool } from '../../../sql/db.ts'
import { type NewEvent, notifyKeysChanged, recordEvents } from '../../../sql/events/events.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { startPostgresProxy } from '../../support/database/postgresProxy.ts'
import { silentLog } from '../../support/logs.ts'
import { newProject } from '../../support/till/tillRows.ts'
import { waitFor } from '../../support/waitFor.ts'
import '../../support/long.ts'

let database: TestDatabase
let pool: TestDatabase['pool']
let feed: EventFeed
beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
  feed = startEventFeed(database.url, pool, silentLog)
})
afterAll(async () => {
  await feed.stop()
  await database[Symbol.asyncDispose]()
})

const add = (projectId: string, count = 1, subject = '') =>
  recordEvents(
    pool,
    Array.from({ length: count }, () => {
      return {
        projectId,
        type: 'message.received',
        data: { messageId: '<a@a.example>', subject },
      } as NewEvent
    }),
  )
const soon = () => performance.now() + 5_000
/** Reads the events that are already stored, without waiting for new events. */
const nowOf = (reader: EventReader) => reader.next(performance.now())
const seqs = async (events: ReturnType<EventReader['next']>) =>
  (await events).map(({ seq }) => Number(seq))
const range = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n)
const after = (seq: number, at: Date | null = null): EventPosition => ({ seq: BigInt(seq), at })

/** Creates a project whose event stream holds the given number of events, one event for each minute. */
async function projectWith(count: number): Promise<string> {
  const projectId = await newProject(pool)
  if (count === 0) return projectId
  await add(projectId, count)
  await pool.query(
    `update events set created_at = '2026-01-01T00:00:00Z'::timestamptz + seq * interval '1 minute'
     where project_id = $1`,
    [projectId],
  )
  return projectId
}
const minute = (n: number, ms = 0) => new Date(Date.UTC(2026, 0, 1, 0, n, 0, ms))

/**
 * Starts an event feed (the readers of all event streams of a process) that gets no notifications from the database.
 * The function `before` runs before each read of this event feed, and the function `after` runs after each read.
 */
async function deafFeed(
  before: (name: string) => void = () => {},
  after: (name: string) => Promise<void> = async () => {},
): Promise<EventFeed> {
  const watched = {
    query: async (statement: { name: string }) => {
      before(statement.name)
      const result = await pool.query(statement as never)
      await after(statement.name)
      return result
    },
  } as unknown as Pool
  const deaf = startEventFeed(database.url, watched, silentLog)
  await deaf.stop()
  return deaf
}

describe('an event reader can start without the id of a received event, and then gets all events after its start', () => {
  test('an event reader whose caller names no received event gets only new events, each immediately', async () => {
    const projectId = await projectWith(2)
    const { reader, begin, missed } = await feed.open(projectId, null)
    expect([begin, missed]).toEqual([after(2, minute(2)), false])
    expect(await nowOf(reader)).toEqual([])
    const coming = reader.next(soon())
    await add(projectId)
    expect(await seqs(coming)).toEqual([3])
    expect(await nowOf(reader)).toEqual([])
    reader.close()
  })

  test('in a project without events, a reader gets all later events from the first event on', async () => {
    const projectId = await projectWith(0)
    const { reader, begin, missed } = await feed.open(projectId, null)
    expect([begin, missed]).toEqual([after(0), false])
    await add(projectId)
    expect(await seqs(reader.next(soon()))).toEqual([1])
    reader.close()
  })

  test('an event reader gets only the events of its own project, and no event of another project', async () => {
    const [projectId, otherId] = [await projectWith(0), await projectWith(0)]
    const { reader } = await feed.open(projectId, null)
    const { reader: other } = await feed.open(otherId, null)
    await add(otherId)
    expect(await seqs(other.next(soon()))).toEqual([1])
    expect(await nowOf(reader)).toEqual([])
    reader.close()
    other.close()
  })

  test('if no event comes before the deadline of a read, an event reader returns an empty list and can still read later events', async () => {
    const projectId = await projectWith(1)
    const { reader } = await feed.open(projectId, null)
    const deadlineMs = performance.now() + 30
    expect(await reader.next(deadlineMs)).toEqual([])
    expect(performance.now()).toBeGreaterThanOrEqual(deadlineMs - 2)
    await add(projectId)
    expect(await seqs(reader.next(soon()))).toEqual([2])
    reader.close()
  })
})

describe('an event reader continues after the last event that its caller has received', () => {
  const open = async (projectId: string, known: EventPosition) => {
    const { reader, ...opened } = await feed.open(projectId, known)
    reader.close()
    return opened
  }

  test('an event reader that continues after a received event gets the later events in order, at most 200 at once', async () => {
    const projectId = await projectWith(401)
    const { reader, begin, missed } = await feed.open(projectId, after(0))
    expect([begin, missed]).toEqual([after(0), false])
    expect(await seqs(nowOf(reader))).toEqual(range(1, 200))
    expect(await seqs(nowOf(reader))).toEqual(range(201, 400))
    expect(await seqs(nowOf(reader))).toEqual([401])
    expect(await nowOf(reader)).toEqual([])
    reader.close()
  })

  test('an event reader gets long events in pages of at most 64 KB, both from the database and from the memory of the process', async () => {
    const projectId = await projectWith(0)
    const { reader: live } = await feed.open(projectId, null)
    // A reader whose caller named no received event gets new events from the memory of the process.
    await add(projectId, 5, 'a'.repeat(25_000))
    const { reader: late } = await feed.open(projectId, after(0))
    for (const reader of [live, late]) {
      expect(await seqs(reader.next(soon()))).toEqual([1, 2])
      expect(await seqs(reader.next(soon()))).toEqual([3, 4])
      expect(await seqs(reader.next(soon()))).toEqual([5])
    }
    await add(projectId, 1, 'b'.repeat(100_000))
    for (const reader of [live, late]) {
      expect(await seqs(reader.next(soon()))).toEqual([6])
      reader.close()
    }
  })

  test('the process keeps one million characters of the newest events in memory, and reads older events from the database', async () => {
    const reads: string[] = []
    const deaf = await deafFeed((name) => reads.push(name))
    const lists = () => reads.filter((name) => name === 'list-events').length
    const projectId = await projectWith(0)
    const { reader: live } = await deaf.open(projectId, null)
    await add(projectId, 30, 'a'.repeat(50_000))
    await deaf.open(projectId, null)
    const got: number[] = []
    while (got.length < 30) got.push(...(await seqs(live.next(soon()))))
    expect(got).toEqual(range(1, 30))
    const before = lists()
    const { reader: near } = await deaf.open(projectId, after(15))
    expect(await seqs(nowOf(near))).toEqual([16])
    expect(lists()).toBe(before)
    const { reader: far } = await deaf.open(projectId, after(5))
    expect(await seqs(nowOf(far))).toEqual([6])
    expect(lists()).toBe(before + 1)
  })

  test('an event reader gets every event, even if 201 or 600 events are added at once', async () => {
    for (const count of [201, 600]) {
      const projectId = await projectWith(1)
      const readers = await Promise.all([1, 2].map(() => feed.open(projectId, null)))
      const { reader: late } = await feed.open(projectId, after(0))
      await add(projectId, count)
      for (const { reader } of readers) {
        const got: number[] = []
        while (got.length < count) got.push(...(await seqs(reader.next(soon()))))
        expect(got).toEqual(range(2, count + 1))
      }
      const got: number[] = []
      while (got.length < count + 1) got.push(...(await seqs(late.next(soon()))))
      expect(got).toEqual(range(1, count + 1))
      for (const { reader } of readers) reader.close()
      late.close()
    }
  })

  test('an event reader reports missed events only if the event right after its last received event was deleted', async () => {
    const projectId = await projectWith(4)
    await pool.query('delete from events where project_id = $1 and seq <= 2', [projectId])
    expect(await open(projectId, after(1))).toEqual({ begin: after(1), missed: true })
    expect(await open(projectId, after(2))).toEqual({ begin: after(2), missed: false })
    const known = after(2, minute(2))
    expect(await open(projectId, known)).toEqual({ begin: known, missed: false })
  })

  test('an event reader reports no missed events if its last received event is the newest, and reports missed events if this event does not exist', async () => {
    const projectId = await projectWith(2)
    const newest = after(2, minute(2))
    expect(await open(projectId, after(2))).toEqual({ begin: after(2), missed: false })
    expect(await open(projectId, newest)).toEqual({ begin: newest, missed: false })
    expect(await open(projectId, after(3))).toEqual({ begin: newest, missed: true })
  })

  test('if a client sends a wrong time for its last event, the reader begins after the newest event that is not later than this time', async () => {
    const projectId = await projectWith(3)
    const begins = async (at: Date, seq = 2) => open(projectId, after(seq, at))
    const missed = true
    expect(await begins(minute(2, 1))).toEqual({ begin: after(2, minute(2)), missed })
    expect(await begins(minute(1))).toEqual({ begin: after(1, minute(1)), missed })
    expect(await begins(minute(0))).toEqual({ begin: after(0), missed })
    expect(await begins(minute(2), 9)).toEqual({ begin: after(2, minute(2)), missed })
    expect(await begins(minute(9), 9)).toEqual({ begin: after(3, minute(3)), missed })
  })

  test('if all events after the last received event are deleted, the reader continues after the newest event', async () => {
    const projectId = await projectWith(3)
    const { reader } = await feed.open(projectId, after(1))
    await pool.query('delete from events where project_id = $1', [projectId])
    expect(await nowOf(reader)).toEqual([])
    await add(projectId)
    expect(await seqs(reader.next(soon()))).toEqual([4])
    reader.close()
  })
})

describe('event readers of one project share their database reads', () => {
  test('all event readers of one project get a new event by one database read, which they share', async () => {
    const reads: string[] = []
    const deaf = await deafFeed((name) => reads.push(name))
    const lists = () => reads.filter((name) => name === 'list-events').length
    const projectId = await projectWith(1)
    const opened = await Promise.all([1, 2, 3].map(() => deaf.open(projectId, null)))
    await Promise.all(opened.map(({ reader }) => nowOf(reader)))
    expect(lists()).toBe(1)
    await add(projectId)
    // No notification arrives for the new event, so the other readers get it only because the opening of a new reader
    // makes the event feed read the database.
    await deaf.open(projectId, null)
    const got = await Promise.all(opened.map(({ reader }) => seqs(reader.next(soon()))))
    expect(got).toEqual([[2], [2], [2]])
    expect(lists()).toBe(2)
    await deaf.open(projectId, null)
    await Promise.all(opened.map(({ reader }) => nowOf(reader)))
    expect(lists()).toBe(2)
  })

  test('event readers notice a new event and their own closing, even while a database read is in progress', async () => {
    let meanwhile = async () => {}
    const deaf = await deafFeed(undefined, async (name) => {
      if (name !== 'list-events') return
      const work = meanwhile
      meanwhile = async () => {}
      await work()
    })
    const projectId = await projectWith(0)
    const { reader } = await deaf.open(projectId, null)
    meanwhile = async () => {
      await add(projectId)
      await deaf.open(projectId, null)
    }
    expect(await seqs(reader.next(soon()))).toEqual([1])
    await add(projectId)
    const { reader: closing } = await deaf.open(projectId, null)
    meanwhile = async () => closing.close()
    const startMs = performance.now()
    expect(await closing.next(soon())).toEqual([])
    expect(performance.now() - startMs).toBeLessThan(4_000)
  })

  test('an event reader whose earlier events were all deleted still gets an event that another reader fetches at the same time', async () => {
    let meanwhile = async () => {}
    let lists = 0
    const deaf = await deafFeed(undefined, async (name) => {
      // The first query for a list of events serves all readers of the project. The second one looks for the deleted
      // events.
      if (name === 'list-events' && ++lists === 2) await meanwhile()
    })
    const projectId = await projectWith(3)
    const { reader } = await deaf.open(projectId, after(1))
    await pool.query('delete from events where project_id = $1', [projectId])
    meanwhile = async () => {
      await add(projectId)
      const { reader: other } = await deaf.open(projectId, after(3))
      expect(await seqs(nowOf(other))).toEqual([4])
    }
    expect(await seqs(reader.next(soon()))).toEqual([4])
  })

  test('if a database read fails, event readers get the error, and later get the events that the next read returns', async () => {
    let isAway = false
    const deaf = await deafFeed((name) => {
      if (isAway && name === 'list-events') throw new Error('the database is away')
    })
    const projectId = await projectWith(1)
    const opened = await Promise.all([1, 2].map(() => deaf.open(projectId, after(0))))
    isAway = true
    const failed = await Promise.allSettled(opened.map(({ reader }) => nowOf(reader)))
    expect(failed.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    isAway = false
    for (const { reader } of opened) expect(await seqs(nowOf(reader))).toEqual([1])
  })

  test('the event feed of a process counts an event reader while it is open, and does not count a reader that failed to open', async () => {
    let isAway = false
    const deaf = await deafFeed(() => {
      if (isAway) throw new Error('the database is away')
    })
    const [projectId, otherId] = [await projectWith(0), await projectWith(0)]
    const [one, two] = [await deaf.open(projectId, null), await deaf.open(projectId, null)]
    const other = await deaf.open(otherId, null)
    expect(deaf.size()).toBe(3)
    one.reader.close()
    one.reader.close()
    expect(deaf.size()).toBe(2)
    isAway = true
    await expect(deaf.open(projectId, null)).rejects.toThrow('the database is away')
    await expect(deaf.open(await projectWith(0), null)).rejects.toThrow('the database is away')
    expect(deaf.size()).toBe(2)
    for (const { reader } of [two, other]) reader.close()
    expect(deaf.size()).toBe(0)
  })
})

describe('an event reader ends when it is closed, or when its API key or database connection changes', () => {
  test('if an event reader is closed while a caller waits, the caller gets no events', async () => {
    const { reader } = await feed.open(await projectWith(0), null)
    expect(reader.ended).toBe(false)
    const waiting = reader.next(soon())
    await nowOf(reader)
    reader.close()
    expect(await waiting).toEqual([])
    expect(reader.ended).toBe(true)
  })

  test('an event reader ends when the API keys of its project change, but not when those of another project change', async () => {
    const [projectId, otherId] = [await projectWith(1), await projectWith(0)]
    const { reader } = await feed.open(projectId, after(0))
    const { reader: other } = await feed.open(otherId, null)
    await notifyKeysChanged(pool, projectId)
    await waitFor('the end of the reader', () => reader.ended)
    expect(await reader.next(soon())).toEqual([])
    expect(other.ended).toBe(false)
    other.close()
    const { reader: again } = await feed.open(projectId, after(0))
    expect(again.ended).toBe(false)
    expect(await seqs(nowOf(again))).toEqual([1])
    again.close()
    reader.close()
  })

  test('a key change before the first connection of the database listener also ends an event reader', async () => {
    const projectId = await projectWith(1)
    await using proxy = await startPostgresProxy(database.url)
    proxy.refuse()
    const late = startEventFeed(proxy.url, pool, silentLog)
    try {
      const { reader } = await late.open(projectId, after(0))
      expect(reader.ended).toBe(false)
      await notifyKeysChanged(pool, projectId)
      proxy.accept()
      await waitFor('the end of the reader', () => reader.ended)
      const { reader: again } = await late.open(projectId, after(0))
      expect([again.ended, await seqs(nowOf(again))]).toEqual([false, [1]])
      again.close()
      reader.close()
    } finally {
      await late.stop()
    }
  })

  test('when the process stops, its event readers end and no new reader can open', async () => {
    const deaf = await deafFeed()
    const projectId = await projectWith(1)
    const { reader } = await deaf.open(projectId, after(0))
    deaf.release()
    expect(reader.ended).toBe(true)
    const { reader: later } = await deaf.open(projectId, after(0))
    expect(later.ended).toBe(true)
    expect(await later.next(soon())).toEqual([])
  })

  test('an event reader ends when the database listener reconnects, but not when it connects for the first time', async () => {
    const own = startEventFeed(database.url, pool, silentLog)
    try {
      const projectId = await projectWith(0)
      const { reader } = await own.open(projectId, null)
      await add(projectId)
      expect(await seqs(reader.next(soon()))).toEqual([1])
      // Only the database listener can wake the reader for the second event, so this event proves that the listener is
      // connected.
      await add(projectId)
      expect(await seqs(reader.next(soon()))).toEqual([2])
      expect(reader.ended).toBe(false)
      await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name = 'purser api (events)'`,
      )
      await waitFor('the end of the reader', () => reader.ended)
      expect(own.size()).toBe(0)
      const { reader: again } = await own.open(projectId, after(0))
      reader.close()
      expect(own.size()).toBe(1)
      expect(await seqs(nowOf(again))).toEqual([1, 2])
    } finally {
      await own.stop()
    }
  })
})
