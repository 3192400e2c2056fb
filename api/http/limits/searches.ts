import { FairTurns, NoTurnError } from '../../../shared/fair/fairTurns.ts'
import type { Pool } from '../../../sql/db.ts'
import { isStatementTimeout } from '../../../sql/db.ts'
import { SearchTimeoutError } from '../../../sql/mail/search/hits.ts'
import { ApiError, badRequest } from '../errors.ts'

/**
 * Sets the maximum number of concurrent searches of one project. With more searches, a project would take the
 * database's processors from other projects.
 */
const PER_PROJECT = 1
const WAITING_PER_PROJECT = 20
const WAIT_MAX_MS = 5_000

const isTooSlow = (error: unknown): boolean =>
  error instanceof SearchTimeoutError || isStatementTimeout(error)

/** Runs searches and other database reads that may scan a large part of an inbox. */
export type Searches = {
  /**
   * Runs one database read, and repeats it if the first attempt took too long. @throws {ApiError} 400 for a read that
   * takes too long twice, 429 for too many concurrent reads of one project.
   * @param party is a project, or the people of a project (see partyOf). The parties take turns.
   * @param options.isFixed tells that the caller cannot ask for a smaller read. If such a read takes too long, the
   * function does not repeat it, and the caller gets 503.
   */
  run<Result>(
    party: string,
    read: (db: Pool) => Promise<Result>,
    options?: { isFixed: boolean },
  ): Promise<Result>
}

/**
 * Reads a list with filters that no index covers. Such a read may scan the whole history of a project, so it waits
 * until it is its project's turn, like a search. Without this wait, a key that asked for rare rows 200 times a minute
 * held all database connections of the API.
 * @param filters are the filters without an index. The value undefined means that the caller does not use the filter.
 */
export const readFiltered = <Result>(
  { pool, searches }: { pool: Pool; searches: Searches },
  party: string,
  filters: readonly unknown[],
  read: (db: Pool) => Promise<Result>,
): Promise<Result> =>
  filters.every((filter) => filter === undefined) ? read(pool) : searches.run(party, read)

/**
 * Creates the object that runs searches. Searches have separate database connections with a short statement timeout.
 * Therefore they never occupy the connection of another request. Projects run their searches in rotation.
 * @param pool holds the database connections that only searches use.
 * @param size is the number of database connections for searches.
 */
export function createSearches(pool: Pool, size: number): Searches {
  const turns = new FairTurns({
    total: size,
    perSharer: PER_PROJECT,
    waitingPerSharer: WAITING_PER_PROJECT,
  })
  return {
    async run(party, read, { isFixed } = { isFixed: false }) {
      const leave = await turns.enter(party, WAIT_MAX_MS).catch((error: unknown) => {
        if (!(error instanceof NoTurnError)) throw error
        throw new ApiError(429, 'rate_limited', 'Too many searches at once', { 'retry-after': '1' })
      })
      try {
        return await read(pool).catch((error: unknown) => {
          if (!isTooSlow(error) || isFixed) throw error
          // A search can also exceed its time limit because the whole database hangs for seconds. Only if a second
          // attempt fails too, the code assumes that the search itself is slow.
          return read(pool)
        })
      } catch (error) {
        if (!isTooSlow(error)) throw error
        if (isFixed) {
          throw new ApiError(503, 'unavailable', 'The database is slow: try again in a minute', {
            'retry-after': '60',
          })
        }
        throw badRequest(
          'The search takes too long: use rarer words or fewer filters, or search a shorter time',
        )
      } finally {
        leave()
      }
    },
  }
}
