import { afterAll, beforeAll, expect, test } from 'bun:test'
import { searchVector } from '../../../../shared/mail/search/searchTerms.ts'
import { requeueUnbuilt } from '../../../../sql/mail/search/buildSegments.ts'
import { createIndexSearch } from '../../../../workers/mail/inbound/indexSearch.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { silentLog } from '../../../support/logs.ts'
import { type Agent, startTestService, type TestService } from '../../../support/service.ts'
import { blocked, newProject } from '../../../support/till/tillRows.ts'
import { waitFor } from '../../../support/waitFor.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service[Symbol.asyncDispose]())

async function store({ project }: Agent, count: number): Promise<void> {
  const { pool } = service.database
  await pool.query(
    `insert into threads (id, project_id, subject, created_at, updated_at, message_count)
     values ('thd_' || $1, $1, 'Thread', clock_timestamp(), clock_timestamp(), $2) on conflict do nothing`,
    [project.id, count],
  )
  const vectors = Array.from({ length: count }, (_, n) =>
    searchVector(project.id, { subject: `mail ${n}`, from: [], to: [], text: '' }),
  )
  await pool.query(
    `insert into messages (project_id, thread_row, direction, message_id, message_id_hash, subject, text_body, labels,
                           created_at, search)
     select $1, t.row, 'received', '<' || n || '>', sha256(n::text::bytea), 'mail', '', '{received}', clock_timestamp(), v::tsvector
     from threads t, unnest($2::text[]) with ordinality v (v, n) where t.project_id = $1`,
    [project.id, vectors],
  )
}

const leaves = async ({ project }: Agent): Promise<number> => {
  const { rows } = await service.database.pool.query(
    'select count(*)::int as n from search_leaves where project_id = $1',
    [project.id],
  )
  return rows[0].n
}

const find = async (agent: Agent, q: string) =>
  (await agent.get(`/v0/messages?q=${encodeURIComponent(q)}`)).body.messages.map(
    ({ messageId }: { messageId: string }) => messageId,
  )

test('a background job builds the search index of a growing inbox, and a search finds the messages', async () => {
  const agent = await service.newAgent()
  await store(agent, 1_000)
  await waitFor('the leaves', async () => (await leaves(agent)) === 4)
  expect(await find(agent, '"mail 0"')).toEqual(['<1>'])
  expect(await find(agent, '"mail 999"')).toEqual(['<1000>'])
  expect(await find(agent, '"mail 1000"')).toEqual([])
})

test('while a job builds the search index of an inbox, another job of this inbox ends at once', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const task = createIndexSearch({ pool, log: silentLog } as never)
  const run = () => task({ projectId }, { attempt: 1 })
  const holder = await pool.connect()
  try {
    await holder.query('begin')
    await holder.query('lock table search_segments in access exclusive mode')
    const first = run()
    await blocked(pool, 1)
    await run()
    await holder.query('commit')
    await first
  } finally {
    holder.release()
  }
})

test('if the search index job of an inbox is lost, the regular housekeeping queues the job again', async () => {
  const agent = await service.newAgent()
  const { pool } = service.database
  await pool.query('alter table messages disable trigger messages_search_added')
  await store(agent, 240)
  await pool.query('alter table messages enable trigger messages_search_added')
  await pool.query(
    `insert into search_pending select project_id, created_at, row, text_bytes from messages where project_id = $1`,
    [agent.project.id],
  )
  await requeueUnbuilt(pool)
  await waitFor('the leaf', async () => (await leaves(agent)) === 1)
})
