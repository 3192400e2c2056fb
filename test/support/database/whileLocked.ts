import type { Pool } from '../../../sql/db.ts'

/**
 * Runs `work` while another transaction holds the row locks of the statement `lock`. @returns the result of `work`
 */
export async function whileLocked<Result>(
  pool: Pool,
  lock: { text: string; values: readonly unknown[] },
  work: () => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const { rowCount } = await client.query(lock.text, [...lock.values])
    if (rowCount === 0) throw new Error('the statement must lock a row')
    return await work()
  } finally {
    await client.query('rollback')
    client.release()
  }
}
