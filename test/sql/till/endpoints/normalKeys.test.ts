/** Tests the migration that normalises the match keys (host and path) of earlier endpoints and unsettled payments. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { parseResourceUrl } from '../../../../shared/till/resourceUrl.ts'
import { createTestDatabase, type TestDatabase } from '../../../support/database/database.ts'
import { newPayment, newProject, newSettled } from '../../../support/till/tillRows.ts'

const MIGRATION = 'sql/migrations/000250_normal_match_keys.sql'
let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

const migrate = async () => database.pool.query(await Bun.file(MIGRATION).text())

async function register(projectId: string, keys: string[]): Promise<string[]> {
  const ids = keys.map((_, n) => `se_${projectId}_${n}`)
  await database.pool.query(
    `insert into seller_endpoints (id, project_id, url_pattern, match_key, price_atomic, network)
     select id, $1, 'https://' || key, key, 1, 'base-sepolia' from unnest($2::text[], $3::text[]) e (id, key)`,
    [projectId, ids, keys],
  )
  return ids
}
const keysOf = async (projectId: string): Promise<string[]> => {
  const { rows } = await database.pool.query(
    'select match_key as key from seller_endpoints where project_id = $1 order by row',
    [projectId],
  )
  return rows.map(({ key }) => key)
}

test('the migration gives an endpoint the match key (host and path) that the service now makes from the endpoint’s URL', async () => {
  const projectId = await newProject(database.pool)
  const paths = ['/x', '/%79/%7e', '/a%2fb%3A', '/%C3%a9', '/100%/%zz', '/%00%1f%7f%ff', '/a|b']
  await register(projectId, [...paths.map((path) => `a.example${path}`), 'mcp://tool/a'])
  await migrate()
  expect(await keysOf(projectId)).toEqual([
    ...paths.map((path) => parseResourceUrl(`https://a.example${path}`).matchKey),
    'mcp://tool/a',
  ])
})

test('if several endpoints of a project would get the same new match key (host and path), only one of them gets the key', async () => {
  const [one, other] = [await newProject(database.pool), await newProject(database.pool)]
  await register(one, ['a.example/%78', 'a.example/x', 'b.example/%78', 'b.example/%78%79'])
  const [gone] = await register(other, [
    'a.example/x',
    'a.example/%78',
    'a.example/%2f%78',
    'a.example/%2F%78',
  ])
  await database.pool.query('update seller_endpoints set deleted_at = now() where id = $1', [gone])
  await migrate()
  expect(await keysOf(one)).toEqual(['a.example/%78', 'a.example/x', 'b.example/x', 'b.example/xy'])
  expect(await keysOf(other)).toEqual([
    'a.example/x',
    'a.example/x',
    'a.example/%2Fx',
    'a.example/%2F%78',
  ])
})

test('the migration also gives the new match key (host and path) to a payment that is not settled yet', async () => {
  const { pool } = database
  const projectId = await newProject(pool)
  const given = { projectId, matchKey: 'a.example/%78' }
  await newPayment(pool, given)
  await newSettled(pool, given)
  await migrate()
  const { rows } = await pool.query(
    'select state, match_key as key from payments where project_id = $1 order by row',
    [projectId],
  )
  expect(rows).toEqual([
    { state: 'verified', key: 'a.example/x' },
    { state: 'settled', key: 'a.example/%78' },
  ])
})
