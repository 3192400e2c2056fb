/** Tests that the job for reading attachments finishes every attachment, whatever happens during the reading. */
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { BlobsAwayError } from '../../../../shared/blobs/objectStore.ts'
import { FILE_MAX_BYTES } from '../../../../shared/mail/documents/document.ts'
import type { Blobs } from '../../../../sql/blobs/blobs.ts'
import { LostObjectError } from '../../../../sql/blobs/sealedBlob.ts'
import { insertPendingTexts } from '../../../../sql/mail/messages/attachmentTexts.ts'
import { createReadAttachments } from '../../../../workers/mail/inbound/readAttachments.ts'
import { startPool } from '../../../../workers/queue/pool.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { calendarFile } from '../../../support/mail/calendar/invitations.ts'
import { messageOf, receive } from '../../../support/mail/mailRows.ts'
import { dropJobs, newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/** Stores a message whose attachments the reading job has not read yet. */
async function storePending(
  projectId: string,
  { filename = 'a.txt', count = 1, from = '192.0.2.1' }: Partial<Pending> = {},
): Promise<string> {
  const { pool } = database
  const { messageId } = await receive(pool, projectId, undefined, { remoteIp: from })
  const { row } = (await messageOf(pool, projectId, messageId))!
  const ids = Array.from({ length: count }, (_, n) => `att_${n + 1}`)
  const contentType = 'application/octet-stream'
  await pool.query('update messages set attachments = $2 where row = $1', [
    row,
    JSON.stringify(ids.map((attachmentId) => ({ attachmentId, filename, contentType }))),
  ])
  await insertPendingTexts(pool, { projectId, messageRow: row }, ids)
  return row
}
type Pending = { filename: string; count: number; from: string }

/** Receives a message with text files, which the job for reading attachments has not read yet. */
async function receiveFiles(projectId: string, count: number) {
  const parts = Array.from(
    { length: count },
    (_, n) => `--b\r\nContent-Disposition: attachment\r\n\r\nText ${n}\r\n`,
  )
  const raw = `From: ada@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${parts.join('')}--b--\r\n`
  const { messageId } = await receive(database.pool, projectId, raw)
  const { row } = (await messageOf(database.pool, projectId, messageId))!
  return { row, parts }
}

/**
 * Stores a message with an attachment that the reading job has not read yet.
 * @param read returns the content of the attachment.
 * @returns two functions: one runs the reading job, and the other returns the state of the attachment and allows
 * another run to claim it.
 */
async function waiting(filename: string, read: () => Promise<Buffer>) {
  const { pool } = database
  const projectId = await newProject(pool)
  const row = await storePending(projectId, { filename })
  const blobs: Blobs = { keep: async () => null, read, of: () => blobs }
  const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
  return {
    run: () => task({ projectId }, { attempt: 1 }),
    /** Runs the waiting jobs of the project, even jobs whose time has not come. */
    async runWaiting() {
      const { rows } = await pool.query(
        `select payload from graphile_worker._private_jobs j where key like 'read_attachments:' || $1 || '%'`,
        [projectId],
      )
      for (const { payload } of rows) await task(payload, { attempt: 1 })
    },
    setTries: (tries: number) =>
      pool.query('update attachment_texts set tries = $2 where message_row = $1', [row, tries]),
    async searched() {
      const { rows } = await pool.query('select search::text from messages where row = $1', [row])
      return rows[0].search
    },
    async state() {
      const { rows } = await pool.query(
        `update attachment_texts set claimed_at = null where message_row = $1 returning state, reason, content`,
        [row],
      )
      return rows[0]
    },
  }
}

test('an attachment that is missing in the object store waits for three job runs, and then counts as damaged', async () => {
  const { run, state } = await waiting('a.pdf', async () => {
    throw new LostObjectError('the object is missing')
  })
  for (let n = 0; n < 3; n++) {
    await expect(run()).rejects.toThrow('the object is missing')
    expect(await state()).toMatchObject({ state: 'pending' })
  }
  await run()
  expect(await state()).toMatchObject({ state: 'failed', reason: 'malformed' })
})

test('an attachment waits while the system cannot start the process that reads attachments, and is read later', async () => {
  const { run, state } = await waiting('a.txt', async () => Buffer.from('Lorem ipsum'))
  const spawn = spyOn(Bun, 'spawn').mockImplementation(() => {
    throw new Error('EAGAIN')
  })
  try {
    for (let n = 0; n < 5; n++) {
      await expect(run()).rejects.toThrow('EAGAIN')
      expect(await state()).toMatchObject({ state: 'pending' })
    }
  } finally {
    spawn.mockRestore()
  }
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Lorem ipsum' })
})

test('an attachment waits while the object store is unreachable, and is read later', async () => {
  let isAway = true
  const { run, state } = await waiting('a.txt', async () => {
    if (isAway) throw new BlobsAwayError('the object store is away')
    return Buffer.from('Lorem ipsum')
  })
  for (let n = 0; n < 5; n++) {
    await expect(run()).rejects.toThrow('the object store is away')
    expect(await state()).toMatchObject({ state: 'pending' })
  }
  isAway = false
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Lorem ipsum' })
})

test('an attachment counts as failed after three job runs that killed the worker', async () => {
  const { run, state, setTries } = await waiting('a.txt', async () => Buffer.from('Lorem ipsum'))
  await setTries(3)
  await run()
  expect(await state()).toMatchObject({ state: 'failed', reason: 'too_slow' })
})

test('an attachment is still read by the third job run, after two job runs that killed the worker', async () => {
  const { run, state, setTries } = await waiting('a.txt', async () => Buffer.from('Lorem ipsum'))
  await setTries(2)
  await run()
  expect(await state()).toMatchObject({ state: 'ready', content: 'Lorem ipsum' })
})

test('an attachment of more than 32 MB counts as too large, and a smaller one is opened', async () => {
  const archive = (bytes: number) => Buffer.concat([Buffer.from('PK\u0003\u0004')], bytes)
  for (const [bytes, reason] of [
    [FILE_MAX_BYTES, 'malformed'],
    [FILE_MAX_BYTES + 1, 'too_large'],
  ] as const) {
    const { run, state } = await waiting('a.zip', async () => archive(bytes))
    await run()
    expect(await state()).toMatchObject({ state: 'failed', reason })
  }
})

test('a run of the reading job takes no further attachment after a quarter of a second, so that other projects get their turn', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const { row } = await receiveFiles(projectId, 3)
  const stateOf = async () =>
    (await pool.query('select state from attachment_texts where message_row = $1', [row])).rows
  let [reads, slow, late] = [0, 0, 0]
  const read: Blobs['read'] = async () => {
    if (slow > 0) late++
    // The first read is quick, so that the job run then takes two attachments together.
    if (++reads > 1) {
      slow++
      await Bun.sleep(SLOW_MS)
    }
    return Buffer.from([0, 1])
  }
  const blobs: Blobs = { keep: async () => null, read, of: () => blobs }
  const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
  for (let n = 0; n < 9 && (await stateOf()).some(({ state }) => state === 'pending'); n++) {
    slow = 0
    await task({ projectId }, { attempt: 1 })
  }
  expect((await stateOf()).every(({ state }) => state === 'none')).toBe(true)
  expect(late).toBe(0)
})

test('the text of an attachment is extracted even if its file name ends with the name of a built-in JavaScript object property', async () => {
  const { run, state } = await waiting('notes.constructor', async () => Buffer.from('Some words'))
  await run()
  expect(await state()).toEqual({ state: 'ready', reason: null, content: 'Some words' })
})

test('a search finds the words of an attachment even if the job ends directly after the text is recorded', async () => {
  const { run, runWaiting, searched } = await waiting('a.txt', async () => Buffer.from('Zanzibar'))
  const { pool } = database
  const query = pool.query.bind(pool)
  const cut = spyOn(pool, 'query').mockImplementation(((...given: [{ name?: string }]) => {
    if (given[0].name === 'store-searched') throw new Error('the process ends')
    return query(...(given as unknown as [string]))
  }) as never)
  try {
    await expect(run()).rejects.toThrow('the process ends')
  } finally {
    cut.mockRestore()
  }
  expect(await searched()).not.toContain('zanzibar')
  await runWaiting()
  expect(await searched()).toContain('zanzibar')
})

test.each([
  ['whose domain grows in ASCII', `m@${'ü.'.repeat(150)}com`],
  ['whose name grows in lower case', `${'İ'.repeat(300)}@a.example`],
])(
  'an invitation from an organizer %s does not keep other files from being read',
  async (_, organizer) => {
    const { pool } = database
    const projectId = await newProject(pool)
    const part = (type: string, content: string) =>
      `--b\r\nContent-Type: ${type}; charset=utf-8\r\nContent-Disposition: attachment\r\n\r\n${content}\r\n`
    const parts = [
      part('text/plain', 'First'),
      part('text/calendar', calendarFile({ organizer, attendees: [organizer] })),
      part('text/plain', 'Last'),
    ]
    const raw = `From: ada@example.com\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${parts.join('')}--b--\r\n`
    const { messageId } = await receive(pool, projectId, raw)
    const { row } = (await messageOf(pool, projectId, messageId))!
    const blobs: Blobs = {
      keep: async () => null,
      read: async ({ bytes }) => bytes,
      of: () => blobs,
    }
    const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
    const stateOf = async () => {
      const { rows } = await pool.query(
        'select state, content from attachment_texts where message_row = $1 order by attachment_id',
        [row],
      )
      return rows
    }
    await task({ projectId }, { attempt: 1 })
    await waitFor('all files to be read', async () => {
      await task({ projectId }, { attempt: 1 })
      return (await stateOf()).every(({ state }) => state !== 'pending')
    })
    expect(await stateOf()).toMatchObject([
      { state: 'ready', content: 'First' },
      { state: 'ready' },
      { state: 'ready', content: 'Last' },
    ])
    const { rows } = await pool.query('select invites from messages where row = $1', [row])
    expect(rows[0].invites).toMatchObject([{ organizer: null, attendees: [], effect: 'new' }])
  },
)

/**
 * Sets the milliseconds for reading a file of a busy project. The value is above 250 ms, after which a job run takes no
 * more attachments.
 */
const SLOW_MS = 260

/** Makes a content store in which reading a file of a busy project waits until the test ends the wait. */
function gatedBlobs(isBusy: (projectId: string) => boolean) {
  const waitingReads: (() => void)[] = []
  const of = (projectId: string): Blobs => ({
    keep: async () => null,
    async read() {
      if (!isBusy(projectId)) return Buffer.from('Lorem ipsum')
      const slow = Bun.sleep(SLOW_MS)
      await new Promise<void>((resolve) => waitingReads.push(resolve))
      await slow
      return Buffer.from([0, 1])
    },
    of,
  })
  return { blobs: of(''), waitingReads }
}

/**
 * Runs the job that reads attachments in a worker pool. Reading the files of a busy project waits until the test ends
 * this wait.
 */
async function startReader(busy: ReadonlySet<string>) {
  const { pool, url } = database
  let isOver = false
  const { blobs, waitingReads } = gatedBlobs((projectId) => !isOver && busy.has(projectId))
  const worker = await startPool(
    {
      ...{ name: 'inbound', databaseUrl: url, concurrency: 40, pollIntervalMs: 100 },
      tasks: (context) => ({
        read_attachments: createReadAttachments(context, { blobs }),
      }),
    },
    silentLog,
  )
  const jobs = async (): Promise<{ key: string | null; runs: boolean; waits: boolean }[]> =>
    (
      await pool.query(
        `select key, locked_at is not null as runs, run_at > clock_timestamp() as waits from graphile_worker.jobs
         where task_identifier = 'read_attachments'`,
      )
    ).rows
  const inHand = async () => (await jobs()).filter(({ runs }) => runs).length
  const stateOf = async (row: string): Promise<string> =>
    (await pool.query('select state from attachment_texts where message_row = $1', [row])).rows[0]
      .state
  return {
    /** Waits until the worker runs jobs of 16 projects, which is the maximum at the same time. */
    whenFull: () => waitFor('16 jobs in hand', async () => (await inHand()) === 16),
    /** Waits until the job of a project runs and keeps its job slot, or until the worker has postponed it. */
    whenDecided: (projectId: string) =>
      waitFor('the first look of the job', async () => {
        const job = (await jobs()).find(({ key }) => key === `read_attachments:${projectId}`)!
        return job.runs ? (await inHand()) === 16 : job.waits
      }),
    stateOf,
    /**
     * Ends the reading of `count` files of busy projects. Stops early if the attachment of the message in the database
     * row `row` is read.
     */
    async endTurns(count: number, row: string | null = null): Promise<void> {
      const isRead = async () => row !== null && (await stateOf(row)) !== 'pending'
      for (let ended = 0; ; ended++) {
        await waitFor('a turn', async () => waitingReads.length > 0 || (await isRead()))
        if (ended === count || (await isRead())) return
        waitingReads.shift()!()
      }
    },
    async stop() {
      isOver = true
      const ended = worker.stop()
      for (const end of waitingReads) end()
      await ended
    },
  }
}

/** Removes the attachments and jobs of earlier tests. */
async function clear(): Promise<void> {
  await database.pool.query(`delete from attachment_texts where state = 'pending'`)
  await dropJobs(database.pool)
}

/**
 * Stores files for sixteen projects, so that these projects occupy all job slots. Then ends the reading of some of
 * their files.
 */
async function fillPlaces({ files, turns }: { files: number; turns: number }) {
  await clear()
  const busy = await Promise.all(Array.from({ length: 16 }, () => newProject(database.pool)))
  for (const projectId of busy) await storePending(projectId, { count: files })
  const reader = await startReader(new Set(busy))
  await reader.whenFull()
  await reader.endTurns(turns)
  await reader.whenFull()
  return reader
}

test('a small file of a new project is read after at most three other files, although sixteen projects have a long backlog', async () => {
  const reader = await fillPlaces({ files: 20, turns: 16 })
  try {
    const projectId = await newProject(database.pool)
    const row = await storePending(projectId)
    await reader.whenDecided(projectId)
    await reader.endTurns(3, row)
    expect(await reader.stateOf(row)).toBe('ready')
  } finally {
    await reader.stop()
  }
})

test('if one network sends slow files to many projects, at most three of these files are read before the file of another network', async () => {
  const reader = await fillPlaces({ files: 3, turns: 1 })
  try {
    const projectId = await newProject(database.pool)
    const row = await storePending(projectId, { from: '198.51.100.7' })
    await reader.whenDecided(projectId)
    await reader.endTurns(3, row)
    expect(await reader.stateOf(row)).toBe('ready')
  } finally {
    await reader.stop()
  }
})

test('attachment jobs that find no free job slot are queued again one after another, at most twenty per second', async () => {
  const { pool } = database
  await clear()
  const { blobs, waitingReads } = gatedBlobs(() => true)
  const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
  const projects = await Promise.all(Array.from({ length: 40 }, () => newProject(pool)))
  for (const projectId of projects) await storePending(projectId)
  await dropJobs(pool)
  const runs = projects.map((projectId) => task({ projectId }, { attempt: 1 }))
  const times = await waitFor('24 jobs to come back', async () => {
    const { rows } = await pool.query<{ run_at: Date }>(
      `select run_at from graphile_worker.jobs where key like 'read_attachments:%' order by run_at`,
    )
    return rows.length === 24 && rows.map(({ run_at }) => run_at.getTime())
  })
  const gaps = times.slice(1).map((time, n) => time - times[n]!)
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(50)
  let ended = 0
  const all = Promise.all(runs.map((run) => run.then(() => ended++)))
  await waitFor('the ends of all runs', () => {
    for (const end of waitingReads.splice(0)) end()
    return ended === runs.length
  })
  await all
})

test('an outage between attachments of a message loses no attachment, and no attachment is read twice', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const { row, parts } = await receiveFiles(projectId, 9)
  let reads = 0
  const read: Blobs['read'] = async ({ bytes }) => {
    reads++
    if (reads === 3 || reads === 6) throw new BlobsAwayError('the object store is away')
    return bytes
  }
  const blobs: Blobs = { keep: async () => null, read, of: () => blobs }
  const task = createReadAttachments({ pool, log: silentLog } as never, { blobs })
  const readingsOf = async () =>
    (
      await pool.query(
        `update attachment_texts set claimed_at = null where message_row = $1
         returning attachment_id as id, state, content, tries`,
        [row],
      )
    ).rows
  for (let n = 0; n < 30 && (await readingsOf()).some(({ state }) => state === 'pending'); n++) {
    await task({ projectId }, { attempt: 1 }).catch((error: unknown) =>
      expect(error).toBeInstanceOf(BlobsAwayError),
    )
  }
  expect((await readingsOf()).map(({ content }) => content).toSorted()).toEqual(
    parts.map((_, n) => `Text ${n}`),
  )
  expect(reads).toBe(parts.length + 2)
  const { rows } = await pool.query(
    `select data -> 'attachment' ->> 'attachmentId' as id from events where project_id = $1 and type = 'attachment.read'`,
    [projectId],
  )
  expect(rows.map(({ id }) => id).toSorted()).toEqual(parts.map((_, n) => `att_${n + 1}`))
})
