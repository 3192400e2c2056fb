/**
 * Tests that the events of a project are numbered in order, and are delivered to the webhooks that subscribe to their
 * types.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { EVENT_TYPES, type EventType } from '../../../shared/events/events.ts'
import { transaction } from '../../../sql/db.ts'
import {
  deleteStaleEvents,
  listEvents,
  type NewEvent,
  readStream,
  recordEvents,
} from '../../../sql/events/events.ts'
import { deleteForgottenWebhooks, deleteProjectWebhook } from '../../../sql/events/webhooks.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database/database.ts'
import { HOOK, newWebhook } from '../../support/events/eventRows.ts'
import { blocked, newProject, whileHeld } from '../../support/till/tillRows.ts'

let database: TestDatabase
let pool: TestDatabase['pool']

beforeAll(async () => {
  database = await createTestDatabase()
  pool = database.pool
})
afterAll(() => database[Symbol.asyncDispose]())

const eventOf = (projectId: string, subject: string, type: EventType = 'message.received') =>
  ({
    projectId,
    type,
    data: {
      messageId: `<${subject}@mail.test>`,
      threadId: 'thd_1',
      inboxId: 'agent@mail.test',
      from: [],
      to: [],
      subject,
      labels: [],
    },
  }) satisfies NewEvent
const record = (...events: NewEvent[]) => transaction(pool, (db) => recordEvents(db, events))
const subjectsOf = async (projectId: string, after = 0n, limit = 10) =>
  (await listEvents(pool, projectId, { after, limit, chars: 10_000 })).events.map(
    ({ seq, data }) => [Number(seq), (data as { subject: string }).subject],
  )
const sentTo = async (webhookId: string): Promise<string[]> => {
  const { rows } = await pool.query(
    'select event from webhook_deliveries where webhook_id = $1 order by row',
    [webhookId],
  )
  return rows.map(({ event }) => event)
}

test('a list of events ends before the event that would exceed the limit of characters, and says that more events follow', async () => {
  const project = await newProject(pool)
  for (const letter of 'abcd') await record(eventOf(project, letter.repeat(1_000)))
  const list = async (after: bigint, limit: number, chars: number) => {
    const { events, hasMore } = await listEvents(pool, project, { after, limit, chars })
    return [events.map(({ seq }) => Number(seq)), hasMore]
  }
  const first = await listEvents(pool, project, { after: 0n, limit: 1, chars: 1 })
  const { size } = first.events[0]!
  expect(size).toBeGreaterThan(1_000)
  expect(await list(0n, 10, size * 2)).toEqual([[1, 2], true])
  expect(await list(0n, 10, size * 2 - 1)).toEqual([[1], true])
  expect(await list(2n, 10, size * 2)).toEqual([[3, 4], false])
  expect(await list(0n, 10, 1)).toEqual([[1], true])
  expect(await list(3n, 10, 1)).toEqual([[4], false])
  expect(await list(0n, 3, size * 10)).toEqual([[1, 2, 3], true])
  expect(await list(0n, 4, size * 10)).toEqual([[1, 2, 3, 4], false])
})

test('events are numbered per project, in the given order', async () => {
  const [one, two] = [await newProject(pool), await newProject(pool)]
  await record(eventOf(one, 'a'), eventOf(two, 'b'), eventOf(one, 'c'))
  await record(eventOf(one, 'd'))
  expect(await subjectsOf(one)).toEqual([
    [1, 'a'],
    [2, 'c'],
    [3, 'd'],
  ])
  expect(await subjectsOf(two)).toEqual([[1, 'b']])
  expect(await subjectsOf(one, 1n)).toEqual([
    [2, 'c'],
    [3, 'd'],
  ])
  expect(await subjectsOf(one, 0n, 1)).toEqual([[1, 'a']])
})

test('if two events are recorded at the same time, the second gets the next number', async () => {
  const projectId = await newProject(pool)
  await record(eventOf(projectId, 'a'))
  const other = 'update event_streams set last_seq = last_seq + 1 where project_id = $1'
  await whileHeld(pool, other, [projectId], () => [record(eventOf(projectId, 'c'))])
  expect(await subjectsOf(projectId)).toEqual([
    [1, 'a'],
    [3, 'c'],
  ])
})

const boundsOf = async (projectId: string) => {
  const { newest, oldest } = await readStream(pool, projectId, null)
  return { newest: newest.seq, oldest }
}

test('a project’s first event has the number 1, and after the deletion of all events the oldest number is that of the next event', async () => {
  const [silent, old, other] = [
    await newProject(pool),
    await newProject(pool),
    await newProject(pool),
  ]
  await record(eventOf(old, 'a'), eventOf(old, 'b'), eventOf(old, 'c'), eventOf(other, 'x'))
  expect(await boundsOf(silent)).toEqual({ newest: 0n, oldest: 1n })
  const age = (seq: number, interval: string) =>
    pool.query(
      'update events set created_at = now() - $3::interval where project_id = $1 and seq = $2',
      [old, seq, interval],
    )
  await age(1, '7 days 1 minute')
  await age(2, '6 days 23 hours')
  await deleteStaleEvents(pool)
  expect(await boundsOf(old)).toEqual({ newest: 3n, oldest: 2n })
  expect(await boundsOf(other)).toEqual({ newest: 1n, oldest: 1n })
  await age(2, '8 days')
  await age(3, '8 days')
  await deleteStaleEvents(pool)
  expect(await boundsOf(old)).toEqual({ newest: 3n, oldest: 4n })
})

test('an event is delivered to the active webhooks of its project that subscribe to its type', async () => {
  const [owner, neighbour] = [await newProject(pool), await newProject(pool)]
  const received = await newWebhook(pool, owner)
  const bounced = await newWebhook(pool, owner, ['message.bounced'])
  const deleted = await newWebhook(pool, owner)
  const foreign = await newWebhook(pool, neighbour)
  await deleteProjectWebhook(pool, { projectId: owner, id: deleted, events: EVENT_TYPES })
  await record(
    eventOf(owner, 'a'),
    eventOf(owner, 'b', 'message.bounced'),
    eventOf(owner, 'c', 'message.sent'),
    eventOf(neighbour, 'd', 'message.failed'),
  )
  expect(await sentTo(received)).toEqual(['message.received'])
  expect(await sentTo(bounced)).toEqual(['message.bounced'])
  expect(await sentTo(deleted)).toEqual([])
  expect(await sentTo(foreign)).toEqual([])
})

/** Records events over a connection that counts the SQL statements. */
const countedRecord = (events: readonly NewEvent[]): Promise<number> =>
  transaction(pool, async (db) => {
    let count = 0
    const query = (...given: unknown[]) => {
      count += 1
      return (db.query as (...given: unknown[]) => unknown)(...given)
    }
    await recordEvents({ query } as never, events)
    return count
  })

test('the number of SQL statements for new events does not depend on the number of events or webhooks', async () => {
  const [small, large] = [await newProject(pool), await newProject(pool)]
  const types: EventType[] = ['message.received', 'message.sent']
  await newWebhook(pool, small, types)
  const hooks: string[] = []
  for (let n = 0; n < 5; n++) hooks.push(await newWebhook(pool, large, types))
  const events = Array.from('abcdefgh', (subject, n) => eventOf(large, subject, types[n % 2]))
  expect(await countedRecord(events)).toBe(await countedRecord([eventOf(small, 'a')]))

  const { rows } = await pool.query(
    `select d.webhook_id, d.subject_id, d.event, d.url, d.status, d.idempotency_key = d.id as has_own_key,
            d.next_attempt_at is not null as is_due, d.body, j.payload
     from webhook_deliveries d join graphile_worker._private_jobs j on j.key = 'deliver_webhook:' || d.id
     where d.project_id = $1 order by d.row`,
    [large],
  )
  const { events: stored } = await listEvents(pool, large, { after: 0n, limit: 8, chars: 100_000 })
  expect(rows.map(({ body, payload, ...row }) => ({ ...row, body: JSON.parse(body) }))).toEqual(
    stored.flatMap(({ type, data, createdAt }) =>
      hooks.map((id) => ({
        webhook_id: id,
        subject_id: 'messageId' in data ? data.messageId : null,
        event: type,
        url: HOOK,
        status: 'pending',
        has_own_key: true,
        is_due: true,
        body: { type, createdAt: createdAt.toISOString(), data },
      })),
    ),
  )
  const { rows: jobs } = await pool.query(
    `select d.row from graphile_worker._private_jobs j join webhook_deliveries d on j.key = 'deliver_webhook:' || d.id
     where d.project_id = $1 order by j.id`,
    [large],
  )
  const order = jobs.map(({ row }) => Number(row))
  expect(order).toEqual(order.toSorted((one, other) => one - other))
  expect(order).toHaveLength(40)
})

test('an event that waits for another event of its project gets the same time or a later one', async () => {
  const projectId = await newProject(pool)
  await record(eventOf(projectId, 'a'))
  let recorded = Promise.resolve()
  await transaction(pool, async (db) => {
    const { rows } = await db.query(
      'update event_streams set last_seq = last_seq + 1 where project_id = $1 returning last_seq',
      [projectId],
    )
    recorded = record(eventOf(projectId, 'c'))
    recorded.catch(() => {})
    await blocked(pool, 1)
    await db.query(
      `insert into events (project_id, seq, type, data) values ($1, $2, 'message.sent', '{}')`,
      [projectId, rows[0].last_seq],
    )
  })
  await recorded
  const { events } = await listEvents(pool, projectId, { after: 0n, limit: 9, chars: 10_000 })
  const times = events.map(({ createdAt }) => createdAt.getTime())
  expect(times).toHaveLength(3)
  expect(times).toEqual(times.toSorted((one, other) => one - other))
})

test('if there is no event to record, no SQL statement runs', async () => {
  const failing = { query: () => Promise.reject(new Error('a statement was sent')) }
  await recordEvents(failing as never, [])
  expect(await listEvents(pool, 'prj_none', { after: 0n, limit: 1, chars: 1 })).toEqual({
    events: [],
    hasMore: false,
  })
})

test('if one transaction records events of two projects, a deleted project gets no event, and the other project gets its event', async () => {
  const [gone, kept] = [await newProject(pool), await newProject(pool)]
  await pool.query('update projects set deleted_at = clock_timestamp() where id = $1', [gone])
  await record(eventOf(gone, 'a'), eventOf(kept, 'b'))
  expect(await subjectsOf(gone)).toEqual([])
  expect(await subjectsOf(kept)).toEqual([[1, 'b']])
  const { rowCount } = await pool.query('select from event_streams where project_id = $1', [gone])
  expect(rowCount).toBe(0)
})

test('the row of a deleted webhook has no secret and only the origin of its URL, and is deleted after a day unless the log has deliveries', async () => {
  const projectId = await newProject(pool)
  const id = await newWebhook(pool, projectId)
  await pool.query(
    `update project_webhooks set url = 'https://h.example:8443/in?token=S3' where id = $1`,
    [id],
  )
  await record(eventOf(projectId, 'a'))
  await deleteProjectWebhook(pool, { projectId, id, events: EVENT_TYPES })
  const { rows } = await pool.query(
    'select url, webhook_key_id, webhook_wrapped_key, webhook_ciphertext from project_webhooks where id = $1',
    [id],
  )
  expect(rows).toEqual([
    {
      url: 'https://h.example:8443',
      webhook_key_id: null,
      webhook_wrapped_key: null,
      webhook_ciphertext: null,
    },
  ])
  const other = await newWebhook(pool, projectId)
  const remain = async () => {
    await deleteForgottenWebhooks(pool)
    const found = await pool.query('select id from project_webhooks where id = any ($1)', [
      [id, other],
    ])
    return found.rows.map((row) => row.id).toSorted()
  }
  expect(await remain()).toEqual([id, other].toSorted())
  await pool.query(`update project_webhooks set deleted_at = deleted_at - interval '25 hours'`)
  expect(await remain()).toEqual([id, other].toSorted())
  await pool.query('delete from webhook_deliveries where webhook_id = $1', [id])
  expect(await remain()).toEqual([other])
})

test('the delivery log states the object (such as a message) of each event', async () => {
  const projectId = await newProject(pool)
  const types: EventType[] = ['message.received', 'purse.warned']
  const webhookId = await newWebhook(pool, projectId, types)
  const mandate = { mandateId: 'man_1', bound: 'day', percent: 80 } as const
  const data = { ...mandate, usedUsdcRaw: '8', limitUsdcRaw: '10' }
  await record(eventOf(projectId, 'a'), { projectId, type: 'purse.warned', data })
  const { rows } = await pool.query(
    'select subject_id from webhook_deliveries where webhook_id = $1 order by row',
    [webhookId],
  )
  expect(rows.map((one) => one.subject_id)).toEqual(['<a@mail.test>', 'man_1'])
})
