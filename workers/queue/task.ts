import type { Logger } from 'pino'
import type { TaskName, TaskPayload } from '../../shared/tasks.ts'
import type { Pool } from '../../sql/db.ts'
import type { HeldOutcomes } from './heldOutcomes.ts'
import type { Lanes } from './lanes.ts'

/** Holds the context that a pool passes to its tasks. */
export type PoolContext = {
  pool: Pool
  log: Logger
  /** Shares the worker pool's slots for jobs between endpoints or domains. */
  lanes: Lanes
  /** Records the outcomes of the external effects that a task has caused. */
  outcomes: HeldOutcomes
}

/**
 * Runs one kind of job. After a crash a task may run twice for one job, and must then change nothing the second time. A
 * task records a remote failure and does not throw it. A throw means a bug or an unreachable database. Graphile Worker
 * then runs the job again.
 */
export type Task<Name extends TaskName> = (
  payload: TaskPayload<Name>,
  /** Describes this run of the job. `attempt` counts from 1 how often the job was fetched. */
  job: { attempt: number },
) => Promise<void>

export type Tasks = { [Name in TaskName]?: Task<Name> }
