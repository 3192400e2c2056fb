import { spyOn } from 'bun:test'
import pg from 'pg'

/**
 * Runs `work` while each SQL statement of this process that contains `part` fails, as if the server stopped at this
 * moment.
 */
export async function whileFailing<Result>(
  part: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const { query } = pg.Client.prototype
  const spy = spyOn(pg.Client.prototype, 'query').mockImplementation(function (
    this: pg.Client,
    ...args: any[]
  ) {
    const text = String(args[0]?.text ?? args[0])
    if (!text.includes(part)) return query.apply(this, args as never)
    throw Object.assign(new Error('the server stops'), { code: '57P01' })
  } as never)
  try {
    return await work()
  } finally {
    spy.mockRestore()
  }
}
