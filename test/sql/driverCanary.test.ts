import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createTestDatabase, type TestDatabase } from '../support/database/database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database[Symbol.asyncDispose]())

/**
 * Tests that each query gets its own rows, because older versions of the runtime could return the rows of another
 * query, which would leak mail and secrets. Mixed queries run concurrently on few connections, and the test checks the
 * rows of every query.
 */
test('each database query gets its own rows, even if many run concurrently', async () => {
  const ask = async (n: number) => {
    switch (n % 4) {
      case 0: {
        const { rows } = await database.pool.query({
          name: 'canary-a',
          text: 'select $1::int as n, $2::text as s',
          values: [n, `s${n}`],
        })
        return rows[0].n === n && rows[0].s === `s${n}`
      }
      case 1: {
        const { rows } = await database.pool.query('select $1::bigint * 2 as d', [n])
        return rows[0].d === String(n * 2)
      }
      case 2: {
        const { rows } = await database.pool.query({
          name: 'canary-b',
          text: 'select g, $1::text as tag from generate_series(1, $2::int) g',
          values: [`t${n}`, n % 7],
        })
        return rows.length === n % 7 && rows.every((row) => row.tag === `t${n}`)
      }
      default: {
        // The pool closes a connection after an error, and a new connection costs as much as fifty queries, so only few
        // queries of this test end with an error.
        if (n % 80 !== 3) {
          const { rows } = await database.pool.query('select $1::text as x', [`x${n}`])
          return rows[0].x === `x${n}`
        }
        return database.pool.query('select 1 / ($1::int - $1::int)', [n]).then(
          () => false,
          (error) => error.code === '22012',
        )
      }
    }
  }
  let wrong = 0
  for (let round = 0; round < 30; round++) {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => ask(round * 100 + n)))
    wrong += answers.filter((right) => !right).length
  }
  expect(wrong).toBe(0)
})
