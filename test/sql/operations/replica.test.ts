import { expect, test } from 'bun:test'
import { authenticateAll } from '../../../sql/account/keys/keys.ts'
import { deleteProject } from '../../../sql/account/projects/deleteProject.ts'
import { findErasure } from '../../../sql/account/projects/erasure.ts'
import { createProject } from '../../../sql/account/projects/projects.ts'
import { purgeProject } from '../../../sql/account/projects/purgeProject.ts'
import { readReplicaLag } from '../../../sql/operations/databaseFacts.ts'
import { markWritten, parseLsn } from '../../../sql/operations/replica.ts'
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

test('after a restore from pg_dump, a WAL position of the former server keeps no read from the replica', async () => {
  await using database = await createTestDatabase()
  const { pool } = database
  const { project, rawKey: key } = await createProject(pool, {
    ...{ name: 'a', purpose: 'BUYER', emailAddress: 'a@mail.test', scopes: [] },
  })
  const writtenTo = async () => {
    const [found] = await authenticateAll(pool, [{ key, budget: '' }], { needsWritten: true })
    return found!.writtenTo
  }
  // pg_dump copies the WAL position, but the restored server counts its positions anew.
  await pool.query(`insert into project_writes (project_id, lsn) values ($1, 'FFFFFFF/0')`, [
    project.id,
  ])
  expect(await writtenTo()).toBeNull()
  await markWritten(pool, [project.id])
  const { rows } = await pool.query('select pg_current_wal_insert_lsn()::text as lsn')
  const [first, now] = [await writtenTo(), parseLsn(rows[0].lsn)]
  expect(first! > 0n && first! <= now).toBe(true)
  await pool.query('create table more_wal ()')
  await markWritten(pool, [project.id])
  expect((await writtenTo())! > first!).toBe(true)
})
