import { FairTurns, NoTurnError } from '../../../shared/fair/fairTurns.ts'
import type { Pool } from '../../../sql/db.ts'
import { ApiError } from '../errors.ts'
import type { Searches } from './searches.ts'

const WAITING_PER_NETWORK = 5
/**
 * Sets the maximum time of a read in milliseconds, including its wait. A read takes at most 6 s, after a wait of up to
 * 5 s for its turn among the searches of all projects.
 */
const WAIT_MAX_MS = 15_000

/**
 * Runs database reads for callers without a key. All these callers together get the same limit on searches as one
 * project. Otherwise ten callers could hold all database connections of the API.
 */
export class StrangerReads {
  readonly #searches: Searches
  readonly #turns = new FairTurns({
    total: 1,
    perSharer: 1,
    waitingPerSharer: WAITING_PER_NETWORK,
  })

  constructor(searches: Searches) {
    this.#searches = searches
  }

  /**
   * Runs one database read. The networks of callers without a key take turns.
   * @param network is the widest network of the caller: an IPv4 address, or the /48 network of an IPv6 address.
   * @throws {ApiError} 429 if too many reads of the network wait, or if the read waits too long. 503 if the read takes
   * too long.
   */
  async run<Result>(network: string, read: (db: Pool) => Promise<Result>): Promise<Result> {
    const leave = await this.#turns.enter(network, WAIT_MAX_MS).catch((error: unknown) => {
      if (!(error instanceof NoTurnError)) throw error
      throw new ApiError(429, 'rate_limited', 'Too many requests at once', { 'retry-after': '1' })
    })
    try {
      return await this.#searches.run('strangers', read, { isFixed: true })
    } finally {
      leave()
    }
  }
}
