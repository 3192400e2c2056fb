import { purgeProject } from '../../sql/account/projects/purgeProject.ts'
import type { PoolContext, Task } from '../queue/task.ts'

/** Removes the data of a deleted project. */
export const createPurgeProject =
  ({ pool }: PoolContext): Task<'purge_project'> =>
  ({ projectId }) =>
    purgeProject(pool, projectId)
