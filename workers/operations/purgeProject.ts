import { purgeProject } from '../../sql/account/purgeProject.ts'
import type { PoolContext, Task } from '../queue/task.ts'

/** Removes what a deleted project held. */
export const createPurgeProject =
  ({ pool }: PoolContext): Task<'purge_project'> =>
  ({ projectId }) =>
    purgeProject(pool, projectId)
