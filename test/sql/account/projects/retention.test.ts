/** Tests how a project’s own retention days are changed. */
import { expect, test } from 'bun:test'
import { RETENTION_NAMES } from '../../../../shared/retention.ts'
import { updateRetention } from '../../../../sql/account/projects/retention.ts'
import { createTestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

test('a change of retention days without a value stores nothing, and writes no audit entry', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const projectId = await newProject(pool)
  const change = (days: object) =>
    updateRetention(pool, projectId, days, { projectId, keyPrefix: 'owner', requestId: 'r' })
  const stored = async () => {
    const { rows } = await pool.query<{ rows: number; entries: number }>(
      `select (select count(*)::int from project_retention) as rows,
         (select count(*)::int from audit_log where project_id = $1) as entries`,
      [projectId],
    )
    return rows
  }
  await change({})
  expect(await stored()).toEqual([{ rows: 0, entries: 0 }])
  await change({ [RETENTION_NAMES[0]!]: 9 })
  expect(await stored()).toEqual([{ rows: 1, entries: 1 }])
})
