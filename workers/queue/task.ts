import type { Logger } from 'pino'
import type { TaskName, TaskPayload } from '../../shared/tasks.ts'
import type { Pool } from '../../sql/db.ts'
import type { HeldOutcomes } from './heldOutcomes.ts'
import type { Lanes } from './lanes.ts'

/** Holds the context that a worker pool passes to its tasks. */
export type PoolContext = {
  pool: Pool
  log: Logger
  /** Shares the job slots of the worker pool between endpoints or mail domains. */
  lanes: Lanes
  /**
   * Records the outcomes of the external effects that tasks have caused, and retries while the database is unreachable.
   */
  outcomes: HeldOutcomes
}

/**
 * Describes a task, which runs one kind of job. After a crash a task may run twice for one job, and must change nothing
 * the second time. If a remote host fails, the task records the failure and throws no error. A task throws an error
 * only because of a bug or an unreachable database, and Graphile Worker then runs the job again.
 */
export type Task<Name extends TaskName> = (
  payload: TaskPayload<Name>,
  /**
   * Describes one run of a job. The number `attempt` tells how often the job was fetched, and is 1 in the first run.
   */
  job: { attempt: number },
) => Promise<void>

export type Tasks = { [Name in TaskName]?: Task<Name> }
