import { expect, test } from 'bun:test'
import { createPool } from '../../../sql/db.ts'
import { readSpending } from '../../../sql/purse/spending.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { shortenDay } from '../../support/database/shortDay.ts'
import { newKeyring, newPurse } from '../../support/purse/purseRows.ts'

test('the sums of an owner’s spending in a week begin at midnight of UTC, also if a day of the week had 23 hours in the time zone of the database', async () => {
  await using database = await createTestDatabase()
  const pool = createPool({
    url: await shortenDay(database.url, 4 * 24),
    size: 2,
    name: 'test',
  })
  try {
    const purse = await newPurse(pool, await newKeyring(pool))
    await purse.reserve([await purse.wanted(1_000n)])
    const first = new Date()
    first.setUTCHours(0, 30, 0, 0)
    first.setUTCDate(first.getUTCDate() - 6)
    await pool.query('update purchases set reserved_at = $1', [first])
    const { byDay } = await readSpending(pool, purse.projectId, 7)
    expect(byDay).toEqual([
      { day: first.toISOString().slice(0, 10), amountAtomic: 1_000n, count: 1 },
    ])
  } finally {
    await pool.end()
  }
})
