import { spyOn } from 'bun:test'
import pg from 'pg'

/**
 * Runs `work`, and runs `change` before the SQL statement number `nth` of this process that contains `part`, or before
 * each such statement. The statement waits for the end of the change, as if another process had been faster.
 */
export async function changingBefore<Result>(
  part: string,
  change: () => Promise<unknown>,
  work: () => Promise<Result>,
  nth: number | 'each' = 1,
): Promise<Result> {
  const { query } = pg.Client.prototype
  let seen = 0
  const spy = spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: any[]
  ) {
    const run = () => query.apply(this, args as never) as unknown
    const text = `${args[0]?.name} ${args[0]?.text ?? args[0]}`
    if (!text.includes(part)) return run()
    seen++
    if (nth !== 'each' && seen !== nth) return run()
    const changed = change().then(run)
    const callback = args.at(-1)
    if (typeof callback !== 'function') return changed
    changed.catch(callback)
    return
  } as never)
  try {
    const result = await work()
    if (seen < (nth === 'each' ? 1 : nth))
      throw new Error(`statement ${nth} with "${part}" never came`)
    return result
  } finally {
    spy.mockRestore()
  }
}
