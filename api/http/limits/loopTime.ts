import { CpuBudget } from '../../../shared/fair/cpuBudget.ts'
import { ApiError } from '../errors.ts'

/**
 * Holds an estimate of the milliseconds for which a JSON response of one megabyte occupies the event loop. In a
 * measurement, 200 lists of 8 MB took 56 s.
 */
const JSON_MS_PER_MB = 35
/**
 * Limits the event loop time for the costly reads of one project. A project may use `burstMs` at once, and then gets
 * `perSecondMs` back in each second. Without this limit, the lists of one key would use nearly all of the event loop's
 * time.
 */
const BUDGET = { burstMs: 5_000, perSecondMs: 100 }
/**
 * Limits for how many milliseconds a project's costly reads can make the project wait. If the project must already wait
 * for so long, the service does not count the time of its further reads. Otherwise many reads that began at the same
 * time would make the project wait for many minutes.
 */
const WAIT_MAX_MS = 30_000

/**
 * Describes a read by its reader and the path of its route. The reader is a project, a platform key, or the network of
 * a caller without a key. If several routes share a limit, a common name takes the place of the path.
 */
export type Reader = { sharer: string; route: string }

/**
 * Names all people of a project together as one party to the limits of time and memory. The agent of the project is a
 * separate party, so that it cannot use up the time and memory that the owner needs to review mail.
 */
export const peopleOf = (projectId: string): string => `people of ${projectId}`

/**
 * Shares the time of the event loop between the reads of projects. Only costly reads count: large JSON responses, and
 * pages that the process makes from a mail. A project that has used up its time can still use routes with small
 * responses.
 */
export class LoopTime {
  readonly #budget: CpuBudget
  /** Holds the paths of the routes whose responses have already taken time that counts against a project's limit. */
  readonly #costly = new Set<string>()

  constructor(nowMs = () => performance.now(), budget = BUDGET) {
    this.#budget = new CpuBudget(budget, nowMs)
  }

  /**
   * Refuses a read before its work begins, if its route can be costly and the project has used up its time of the event
   * loop. @throws {ApiError} 429 with the time until the project may read again.
   */
  admit({ sharer, route }: Reader): void {
    const delayMs = this.#costly.has(route) ? this.#budget.delayMs(sharer) : 0
    if (delayMs === 0) return
    const message = 'Too many large responses: read smaller pages or wait'
    throw new ApiError(429, 'rate_limited', message, {
      'retry-after': String(Math.ceil(delayMs / 1_000)),
    })
  }

  /**
   * Counts the processing time of a large JSON response against a project's limit. The function estimates this time
   * from the size in bytes.
   */
  countJson(reader: Reader, bytes: number): void {
    this.#count(reader, (bytes / (1024 * 1024)) * JSON_MS_PER_MB)
  }

  /**
   * Runs synchronous work, and counts its time. On a busy machine, the work waits for the processor, and this wait must
   * not count. The processor time, however, includes other threads of the process. Therefore the function counts the
   * smaller of the elapsed time and the processor time.
   */
  run<Result>(reader: Reader, work: () => Result): Result {
    const startedMs = performance.now()
    const before = process.cpuUsage()
    try {
      return work()
    } finally {
      const { user, system } = process.cpuUsage(before)
      this.#count(reader, Math.min((user + system) / 1_000, performance.now() - startedMs))
    }
  }

  #count({ sharer, route }: Reader, ms: number): void {
    this.#costly.add(route)
    if (this.#budget.delayMs(sharer) < WAIT_MAX_MS) this.#budget.charge(sharer, ms)
  }
}
