import { expect, test } from 'bun:test'
import { openExport, type ProjectExport } from '../../../../sql/account/projects/exportProject.ts'
import { createBlobs } from '../../../../sql/blobs/blobs.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

test('if an export is closed twice, the next user of its database connection is not affected', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const entry = { actor: { projectId, keyPrefix: 'lopk', requestId: 'req' }, part: 'export' }
  const taken = await openExport({ pool, blobs: createBlobs(pool, null) }, projectId, entry)
  const { close } = taken as ProjectExport
  await close()
  // After the first close, the pool gives the connection of the export to its next user. The transaction of this user
  // must survive the second close of the export.
  const next = await pool.connect()
  await next.query('begin')
  await next.query('create temporary table kept (n int)')
  await close()
  expect((await next.query('select count(*)::int as n from kept')).rows).toEqual([{ n: 0 }])
  await next.query('rollback')
  next.release()
})
