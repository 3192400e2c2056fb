import { expect, test } from 'bun:test'
import { startWaiters } from '../../../api/http/waiters.ts'
import { CHANGES_CHANNEL } from '../../../sql/changes.ts'
import { createTestDatabase } from '../../support/database/database.ts'
import { silentLog } from '../../support/logs.ts'

test('a change of a row that comes before a request begins to wait ends the wait at once', async () => {
  await using database = await createTestDatabase()
  const waiters = startWaiters(database.url, silentLog)
  const [early, late] = [waiters.watch('pay_1'), waiters.watch('pay_1')]
  const farMs = performance.now() + 20_000
  // After its connection, the listener reports a change of every row.
  expect(await Promise.all([early.changed(farMs), late.changed(farMs)])).toEqual([true, true])
  const seen = early.changed(farMs)
  await database.pool.query(`select pg_notify('${CHANGES_CHANNEL}', 'pay_1')`)
  expect(await seen).toBe(true)
  const startMs = performance.now()
  expect(await late.changed(farMs)).toBe(true)
  expect(performance.now() - startMs).toBeLessThan(10_000)
  await waiters.stop()
})
