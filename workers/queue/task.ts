import type { Logger } from 'pino'
import type { TaskName, TaskPayload } from '../../shared/tasks.ts'
import type { Pool } from '../../sql/db.ts'
import type { HeldOutcomes } from './heldOutcomes.ts'
import type { Lanes } from './lanes.ts'

/** The context that a pool hands to its tasks. */
export type PoolContext = {
  pool: Pool
  log: Logger
  /** Shares the pool's slots between endpoints, or domains. */
  lanes: Lanes
  /** Records what a task has done on the outside. */
  outcomes: HeldOutcomes
}

/**
 * One kind of job. It may run twice for one job, after a crash, and must then change nothing the second time. A task
 * records a remote failure and throws nothing. A throw means a bug or a database that is away; Graphile Worker then
 * tries again.
 */
export type Task<Name extends TaskName> = (
  payload: TaskPayload<Name>,
  /** `attempt` counts the fetches of the job, from 1. */
  job: { attempt: number },
) => Promise<void>

export type Tasks = { [Name in TaskName]?: Task<Name> }
