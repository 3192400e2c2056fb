/** Tests the settings of the connections to the database. */
import { expect, test } from 'bun:test'
import { createPool } from '../../sql/db.ts'
import { createTestDatabase } from '../support/database/database.ts'
import { shortenDay } from '../support/database/shortDay.ts'

test('a day of the service has 24 hours, even if the clocks in the time zone of the database go forward', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({ url: await shortenDay(database.url), size: 1, name: 'test' })
  try {
    const { rows } = await pool.query(
      `select extract(epoch from now() - (now() - interval '1 day'))::int / 3600 as hours`,
    )
    expect(rows).toEqual([{ hours: 24 }])
  } finally {
    await pool.end()
  }
})
