/** Tests that one job parses all mails that arrive together, and that a slow or harmful mail gets a separate job. */

import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { deleteProject } from '../../../../sql/account/projects/deleteProject.ts'
import type { Pool } from '../../../../sql/db.ts'
import { insertInboundMails, type SpooledMail } from '../../../../sql/mail/inbound/inboundMails.ts'
import { createParseInbound } from '../../../../workers/mail/inbound/parseInbound.ts'
import type { LookUp } from '../../../../workers/mail/lookUp.ts'
import { createHeldOutcomes } from '../../../../workers/queue/heldOutcomes.ts'
import { Lanes } from '../../../../workers/queue/lanes.ts'
import { noBlobs } from '../../../support/database/blobs.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { testWhole } from '../../../support/database/extent.ts'
import { silentLog } from '../../../support/logs.ts'
import { trustingLookUp } from '../../../support/mail/fakeLookUp.ts'
import { addressOf, rawMail, spooled } from '../../../support/mail/mailRows.ts'
import { RECOVERY_LIMIT_MS } from '../../../support/process/alone.ts'
import { startProcess } from '../../../support/process/process.ts'
import { startTcpProxy } from '../../../support/process/tcpProxy.ts'
import { newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'
import '../../../support/long.ts'

const tasksOf = (pool: Pool, lookUp = trustingLookUp, slots = 200) =>
  createParseInbound(
    { pool, log: silentLog, lanes: new Lanes(1), outcomes: createHeldOutcomes(silentLog) },
    { mailDomain: 'mail.test', lookUp, blobs: noBlobs, bounceKeys: [], slots },
  )

type Arrival = { projectId: string; subject: string; changes?: Partial<SpooledMail>; text?: string }

/** Stores inbound mails with one SQL statement. @returns the ids of the inbound mails. */
async function arrive(pool: Pool, arrivals: readonly Arrival[]): Promise<string[]> {
  const startMs = Date.now()
  const mails = await Promise.all(
    arrivals.map(async ({ projectId, subject, changes, text }, n) =>
      spooled(
        [await addressOf(pool, projectId)],
        rawMail({ subject, ...(text === undefined ? {} : { text }) }),
        { receivedAt: new Date(startMs + n), ...changes },
      ),
    ),
  )
  await insertInboundMails(pool, mails)
  const { rows } = await pool.query<{ id: string }>(
    `select i.id from inbound_mails i join raw_mails r on r.id = i.raw_id where r.source_key = any ($1) order by i.id`,
    [mails.map(({ sourceKey }) => sourceKey)],
  )
  return rows.map(({ id }) => id)
}

/** Returns the queued jobs, without the search index jobs that every project has. */
const jobsOf = async (pool: Pool) => {
  const { rows } = await pool.query<{ key: string; payload: { inboundIds?: string[] } }>(
    `select key, payload from graphile_worker._private_jobs
     where key is null or key not like 'index_search:%' order by id`,
  )
  return rows
}

const subjectsOf = async (pool: Pool): Promise<string[]> => {
  const { rows } = await pool.query('select subject from messages order by subject')
  return rows.map(({ subject }) => subject)
}

test('small mails that arrive together share one parser job, but a single mail or a large mail gets a separate job', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [one, two] = [await newProject(pool), await newProject(pool)]
  const ids = await arrive(pool, [
    { projectId: one, subject: 'a' },
    { projectId: one, subject: 'large', text: 'x'.repeat(70_000) },
    { projectId: two, subject: 'b' },
  ])
  const [alone] = await arrive(pool, [{ projectId: one, subject: 'c' }])
  const jobs = await jobsOf(pool)
  expect(jobs.map(({ payload }) => payload)).toEqual([
    { inboundIds: [ids[0]!, ids[2]!] },
    { inboundId: ids[1] },
    { inboundId: alone },
  ] as never)
  const many = Array.from({ length: 70 }, () => ({ projectId: one, subject: 'many' }))
  await arrive(pool, many)
  const sizes = (await jobsOf(pool)).slice(3).map(({ payload }) => payload.inboundIds?.length)
  expect(sizes).toEqual([32, 32, 6])
})

test('a batch of mails for several inboxes is stored in few transactions, and a second run of the batch stores nothing', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projects = await Promise.all(Array.from({ length: 8 }, () => newProject(pool)))
  const inboundIds = await arrive(
    pool,
    projects.flatMap((projectId) => ['1', '2', '3'].map((subject) => ({ projectId, subject }))),
  )
  const { parse_batch: parse } = tasksOf(pool)
  await parse({ inboundIds }, { attempt: 1 })
  const { rows } = await pool.query(
    'select count(*)::int as n, count(distinct xmin::text)::int as transactions from messages',
  )
  expect(rows[0].n).toBe(24)
  expect(rows[0].transactions).toBeLessThan(8)
  await parse({ inboundIds }, { attempt: 2 })
  expect(await subjectsOf(pool)).toHaveLength(24)
  const { rowCount } = await pool.query(`select from inbound_mails where state = 'stored'`)
  expect(rowCount).toBe(24)
})

test('a parser batch stores replies, repeated mails and equal Message-IDs in the same way as separate parser jobs', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const address = await addressOf(pool, projectId)
  const repeated = rawMail({ id: 'first@x.test', subject: 'Plan' })
  await insertInboundMails(
    pool,
    [
      repeated,
      rawMail({ id: 'reply@x.test', subject: 'Other', headers: 'In-Reply-To: <first@x.test>\r\n' }),
      repeated,
      rawMail({ id: 'first@x.test', subject: 'Different' }),
      rawMail({ id: 'later@x.test', subject: 'Re: Plan' }),
    ].map((raw, n) => spooled([address], raw, { receivedAt: new Date(Date.now() + n) })),
  )
  const [job] = await jobsOf(pool)
  await tasksOf(pool).parse_batch({ inboundIds: job!.payload.inboundIds! }, { attempt: 1 })
  const { rows } = await pool.query(
    'select message_id, dense_rank() over (order by thread_row)::int as thread from messages order by message_id',
  )
  expect(rows).toEqual([
    { message_id: '<first.1@x.test>', thread: 1 },
    { message_id: '<first@x.test>', thread: 1 },
    { message_id: '<later@x.test>', thread: expect.any(Number) },
    { message_id: '<reply@x.test>', thread: 1 },
  ])
  const { rows: threads } = await pool.query(
    `select t.message_count = (select count(*) from messages m where m.thread_row = t.row) as exact from threads t`,
  )
  expect(threads.every(({ exact }) => exact)).toBe(true)
})

test('a mail leaves its parser batch and gets a separate job if its name server is silent, or if the database refuses the mail', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  await pool.query(`alter table messages add constraint no_odd check (subject <> 'odd')`)
  const lookUp: LookUp = (name, type) =>
    name.endsWith('silent.test') ? new Promise(() => {}) : trustingLookUp(name, type)
  const inboundIds = await arrive(pool, [
    { projectId, subject: 'slow', changes: { envelopeFrom: 'a@silent.test' } },
    { projectId, subject: 'odd' },
    { projectId, subject: 'a' },
    { projectId: await newProject(pool), subject: 'b' },
  ])
  await pool.query('delete from graphile_worker._private_jobs')
  let hasEnded = false
  const run = tasksOf(pool, lookUp)
    .parse_batch({ inboundIds }, { attempt: 1 })
    .then(() => {
      hasEnded = true
    })
  await waitFor('the others', async () => (await subjectsOf(pool)).join() === 'a,b')
  expect(hasEnded).toBe(false)
  await run
  const keys = (await jobsOf(pool)).map(({ key }) => key)
  expect(keys.toSorted()).toEqual(
    inboundIds
      .slice(0, 2)
      .map((id) => `parse_inbound:${id}`)
      .toSorted(),
  )
})

test('mails that arrive in a burst are parsed in the batches in which they were queued, even while the processor is busy', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const text = 'Some words of a mail that takes its time.\n'.repeat(100)
  const mails = Array.from({ length: 640 }, () => ({ projectId, subject: 'burst', text }))
  await arrive(pool, mails)
  const jobs = await jobsOf(pool)
  await pool.query('delete from graphile_worker._private_jobs')
  const { parse_batch: parse } = tasksOf(pool)
  await Promise.all(
    jobs.map(({ payload }) => parse({ inboundIds: payload.inboundIds! }, { attempt: 1 })),
  )
  expect(await jobsOf(pool)).toEqual([])
  expect(await subjectsOf(pool)).toHaveLength(640)
})

test('a parser batch stores the mail of one inbox at once, even while another transaction locks another inbox of the batch', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [held, free] = [await newProject(pool), await newProject(pool)]
  const inboundIds = await arrive(pool, [
    { projectId: held, subject: 'held' },
    { projectId: free, subject: 'free' },
  ])
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('select from projects where id = $1 for update', [held])
    const run = tasksOf(pool).parse_batch({ inboundIds }, { attempt: 1 })
    await waitFor('the other', async () => (await subjectsOf(pool)).join() === 'free')
    await client.query('commit')
    await run
  } finally {
    client.release()
  }
  expect(await subjectsOf(pool)).toEqual(['free', 'held'])
})

test('a parser batch stores the mail of one inbox, even while another transaction locks the events of another inbox', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [held, free] = [await newProject(pool), await newProject(pool)]
  const inboundIds = await arrive(pool, [
    { projectId: held, subject: 'held' },
    { projectId: free, subject: 'free' },
  ])
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query('insert into event_streams (project_id, last_seq) values ($1, 1)', [held])
    const run = tasksOf(pool).parse_batch({ inboundIds }, { attempt: 1 })
    await waitFor('the other', async () => (await subjectsOf(pool)).join() === 'free')
    await client.query('rollback')
    await run
  } finally {
    client.release()
  }
  expect(await subjectsOf(pool)).toEqual(['free', 'held'])
})

test('if a project is deleted while a batch of mails is parsed, only the mail of this project is lost', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [gone, kept] = [await newProject(pool), await newProject(pool)]
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>()
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const lookUp: LookUp = async (name, type) => {
    ask()
    await answered
    return trustingLookUp(name, type)
  }
  const inboundIds = await arrive(pool, [
    { projectId: gone, subject: 'gone' },
    { projectId: kept, subject: 'kept' },
  ])
  const run = tasksOf(pool, lookUp).parse_batch({ inboundIds }, { attempt: 1 })
  await asked
  await deleteProject(pool, gone, null)
  answer()
  await run
  expect(await subjectsOf(pool)).toEqual(['kept'])
})

test('a flood of mail to one inbox uses only a part of the parser slots, and the rest of the flood waits in one job', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const [flooded, quiet] = [await newProject(pool), await newProject(pool)]
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  const lookUp: LookUp = async (name, type) => {
    await answered
    return trustingLookUp(name, type)
  }
  const { parse_batch: parse } = tasksOf(pool, lookUp, 2)
  // Each mail of the flood is so large that it occupies half of a parser slot (the memory for one running job).
  const text = 'x'.repeat(33_000)
  const flood = await arrive(
    pool,
    Array.from({ length: 6 }, () => ({ projectId: flooded, subject: 'flood', text })),
  )
  const other = await arrive(
    pool,
    ['q', 'r'].map((subject) => ({
      projectId: quiet,
      subject,
      changes: { remoteIp: '198.51.100.1' },
    })),
  )
  await pool.query('delete from graphile_worker._private_jobs')
  const runs = [parse({ inboundIds: flood }, { attempt: 1 })]
  await waitFor('the rest', async () => (await jobsOf(pool)).length === 1)
  runs.push(parse({ inboundIds: other }, { attempt: 1 }))
  answer()
  await Promise.all(runs)
  const [rest] = await jobsOf(pool)
  expect(rest!.payload.inboundIds!.length).toBeGreaterThan(2)
  expect((await subjectsOf(pool)).filter((subject) => subject !== 'flood')).toEqual(['q', 'r'])
})

test('after a crash a batch of mails is parsed in a child process, and if this child process is killed, no mail is lost', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const inboundIds = await arrive(
    pool,
    await Promise.all(
      ['a', 'b', 'c'].map(async (subject) => ({ projectId: await newProject(pool), subject })),
    ),
  )
  const run = tasksOf(pool).parse_batch({ inboundIds }, { attempt: 2 })
  await waitFor('a child', () => {
    const children = spawnSync('pgrep', ['-P', String(process.pid), '-f', 'parserMain'])
    const [pid] = children.stdout.toString().split('\n')
    if (pid === undefined || pid === '') return false
    process.kill(Number(pid), 'SIGKILL')
    return true
  })
  await run
  const { rows } = await pool.query(
    `select count(*)::int as n, count(*) filter (where 'unparseable' = any (labels))::int as unparsed from messages`,
  )
  expect(rows[0].n).toBe(3)
  expect(rows[0].unparsed).toBeLessThanOrEqual(2)
})

testWhole(
  'if a worker is killed, each message of its batch is stored once, even if a separate job for one of these messages is also queued',
  async () => {
    await using database = await createTestDatabase()
    const { pool } = database
    const direct = new URL(database.url)
    await using proxy = await startTcpProxy(Number(direct.port))
    const projects = await Promise.all([1, 2, 3].map(() => newProject(pool)))
    const ids = await arrive(
      pool,
      Array.from({ length: 12 }, (_, n) => ({ projectId: projects[n % 3]!, subject: `s${n}` })),
    )
    const env = (databaseUrl: string) => ({
      DATABASE_URL: databaseUrl,
      MAIL_DOMAIN: 'mail.test',
      DATA_DIR: tmpdir(),
      LOG_LEVEL: 'silent',
    })
    proxy.muteOn = 'insert into messages'
    const behindProxy = database.url.replace(`:${direct.port}/`, `:${proxy.port}/`)
    await using doomed = startProcess('workers/main.ts', env(behindProxy), ['--pool', 'mail'])
    await waitFor('the store to be on its way', () => proxy.muted > 0, RECOVERY_LIMIT_MS)
    doomed.child.kill('SIGKILL')
    await doomed.exited
    await proxy.cut()
    // An earlier release, which had no batches, queued a separate job for each mail, in the form of the next statement.
    // The new worker must still accept such a job.
    await pool.query(
      `select graphile_worker.add_job('parse_inbound', json_build_object('inboundId', $1::text), job_key := 'parse_inbound:' || $1)`,
      [ids[0]],
    )
    await using _heir = startProcess('workers/main.ts', env(database.url), ['--pool', 'mail'])
    await waitFor(
      'the jobs to end',
      async () => (await jobsOf(pool)).length === 0,
      RECOVERY_LIMIT_MS,
    )
    expect(await subjectsOf(pool)).toEqual(Array.from({ length: 12 }, (_, n) => `s${n}`).toSorted())
    const { rows } = await pool.query('select count(*)::int as n from events')
    expect(rows[0].n).toBe(12)
  },
)
