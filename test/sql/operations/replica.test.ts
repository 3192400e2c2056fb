import { expect, test } from 'bun:test'
import { deleteProject } from '../../../sql/account/projects/deleteProject.ts'
import { findErasure } from '../../../sql/account/projects/erasure.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import { purgeProject } from '../../../sql/account/projects/purgeProject.ts'
import { readReplicaLag } from '../../../sql/operations/databaseFacts.ts'
import { markWritten } from '../../../sql/operations/replica.ts'
import { createTestDatabase } from '../../support/database/database.ts'

test('a late request for an erased project leaves no row of the project', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const newProject = async (name: string) => {
    const emailAddress = `${name}@mail.test`
    const { project } = await createProject(pool, {
      ...{ name, purpose: 'BUYER', emailAddress, scopes: [] },
    })
    return project.id
  }
  const [erased, live] = [await newProject('erased'), await newProject('live')]
  await deleteProject(pool, erased, null)
  await purgeProject(pool, erased)
  await markWritten(pool, [erased, live])
  const { rows } = await pool.query('select project_id from project_writes')
  expect(rows).toEqual([{ project_id: live }])
  expect((await findErasure(pool, erased))?.left.other).toBe(0)
})

test('a database that is no replica counts as a primary', async () => {
  await using database = await createTestDatabase()
  expect(await readReplicaLag(database.pool, database.pool)).toBe('primary')
})
