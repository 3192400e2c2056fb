/** Tests the migration that normalises the paths of earlier purchases. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { normalUrl } from '../../../../shared/http/normalUrl.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newProject } from '../../../support/till/tillRows.ts'

const MIGRATION = 'sql/migrations/000249_normal_paths_of_purchases.sql'
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const PATHS = [
  '/weather',
  '/%77eather/%7e',
  '/a%2fb%2Fc%25%20',
  '/é/%c3%a9/€/😀',
  '/100%/%zz/%%37%37',
  '/a%3ab|c[d]^`"<>{e}',
  '/a\\b',
  '/%00%0a%7f%80%ff',
]

test('the migration gives each path of a purchase the form that the service now stores', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const all = [...PATHS, '/{{ key }}/%41{{id}}']
  await pool.query(
    `insert into purchases (id, project_id, kind, request_hash, method, host, path, max_atomic, asked_by)
     select 'pur_' || n, $1, 'payment', '', 'GET', 'a.example', path, 1, 'agent'
     from unnest($2::text[]) with ordinality p (path, n)`,
    [projectId, all],
  )
  await pool.query(await Bun.file(MIGRATION).text())
  const { rows } = await pool.query('select path from purchases order by row')
  expect(rows.map(({ path }) => path)).toEqual([
    ...PATHS.map((path) => normalUrl(`https://a.example${path}`).path),
    '/{{key}}/A{{id}}',
  ])
})
