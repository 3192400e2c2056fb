/**
 * Tests reads on a replica with a fake connection pool. The pool simulates errors that a test cannot cause on a real
 * replica.
 */
import { expect, test } from 'bun:test'
import { replicaReads } from '../../../api/http/reads.ts'
import type { Pool } from '../../../sql/db.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'
import { startTestService } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

const named = (name: string, lsn: string | null) => ({
  pool: { name, query: async () => ({ rows: [{ lsn }] }) } as unknown as Pool,
  searches: {} as never,
})
const nameOf = (server: { pool: Pool }) => (server.pool as unknown as { name: string }).name
const failure = (code: string) => Object.assign(new Error('failed'), { code })

test.each([
  // If the replay of the write-ahead log must remove the rows that a long read uses, the replica cancels this read
  // (PostgreSQL 18, §26.4.2).
  ['cancelled by the replay', failure('40001'), 'primary'],
  ['a deadlock with the replay', failure('40P01'), 'primary'],
  // During an upgrade, the replica may lack tables, columns and functions that the primary already has.
  ['a missing table', failure('42P01'), 'primary'],
  ['a missing column', failure('42703'), 'primary'],
  ['a missing function', failure('42883'), 'primary'],
  ['a wrong statement', failure('42601'), null],
])(
  'after an error of the replica a read gets its answer from the right database: %s',
  async (_name, error, wanted) => {
    const reads = replicaReads({
      primary: named('primary', null),
      replica: named('replica', '0/1000'),
      writtenTo: () => null,
      log: silentLog,
    })
    const read = () =>
      reads.run(new Request('http://x/'), async (server) => {
        if (nameOf(server) === 'replica') throw error
        return nameOf(server)
      })
    try {
      await waitFor('the replica', async () =>
        reads
          .run(new Request('http://x/'), async (server) => nameOf(server))
          .then((name) => name === 'replica'),
      )
      if (wanted === null) await expect(read()).rejects.toBe(error)
      else expect(await read()).toBe(wanted)
    } finally {
      await reads.stop()
    }
  },
)

test('if the service cannot record that a caller wrote data, the call still succeeds, and the primary database serves the caller’s reads', async () => {
  // The second database of this test is no replica, so the service reads no lists from it. Nevertheless the service
  // must record each write of a project.
  await using other = await createTestDatabase()
  await using service = await startTestService({
    smtp: false,
    workers: false,
    env: { DATABASE_REPLICA_URL: other.url },
  })
  const agent = await service.newAgent()
  const { pool } = service.database
  await pool.query(
    `create function refuse_write() returns trigger language plpgsql as $$ begin raise 'away'; end $$`,
  )
  await pool.query(
    'create trigger refuse_write before insert on project_writes for each row execute function refuse_write()',
  )
  const { status, body } = await agent.post('/v0/webhooks', {
    url: 'https://example.com/hooks',
    events: ['message.received'],
  })
  expect([status, body.secret?.slice(0, 6)]).toEqual([201, 'whsec_'])
  const recorded = async () => (await pool.query('select project_id from project_writes')).rows
  expect(await recorded()).toEqual([])
  await pool.query('drop function refuse_write cascade')
  await waitFor('the record of the write', async () => (await recorded()).length === 1)
})

test('while the service cannot record the writes of some project, all reads run on the primary database', async () => {
  let isAway = true
  let marked: unknown
  const primary = {
    ...named('primary', null),
    pool: {
      name: 'primary',
      query: async ({ values }: { values: unknown[] }) => {
        if (isAway) throw failure('57P01')
        ;[marked] = values
        return { rows: [] }
      },
    } as unknown as Pool,
  }
  const reads = replicaReads({
    primary,
    replica: named('replica', '0/1000'),
    writtenTo: () => null,
    log: silentLog,
  })
  const serverOf = () => reads.run(new Request('http://x/'), async (server) => nameOf(server))
  try {
    await waitFor('the replica', async () => (await serverOf()) === 'replica')
    await reads.wrote('prj_1')
    expect(await serverOf()).toBe('primary')
    isAway = false
    await waitFor('the replica', async () => (await serverOf()) === 'replica')
    expect(marked).toEqual(['prj_1'])
  } finally {
    await reads.stop()
  }
})
