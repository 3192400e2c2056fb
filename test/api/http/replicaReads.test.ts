/** Is a fake connection pool that produces those errors of a database replica which a test cannot cause. */
import { expect, test } from 'bun:test'
import { replicaReads } from '../../../api/http/reads.ts'
import type { Pool } from '../../../sql/db.ts'
import { silentLog } from '../../support/service.ts'
import { waitFor } from '../../support/waitFor.ts'

const named = (name: string, lsn: string | null) => ({
  pool: { name, query: async () => ({ rows: [{ lsn }] }) } as unknown as Pool,
  searches: {} as never,
})
const nameOf = (server: { pool: Pool }) => (server.pool as unknown as { name: string }).name
const failure = (code: string) => Object.assign(new Error('failed'), { code })

test.each([
  // The replica cancels a long read if the replay of the write-ahead log must remove the rows that it reads (PostgreSQL
  // 18, §26.4.2).
  ['cancelled by the replay', failure('40001'), 'primary'],
  ['a deadlock with the replay', failure('40P01'), 'primary'],
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
