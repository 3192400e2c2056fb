import { purgeProject } from '../../sql/account/projects/purgeProject.ts'
import type { PoolContext, Task } from '../queue/task.ts'

/** Removes the data of a deleted project. */
export const createPurgeProject =
  ({ pool, log }: PoolContext): Task<'purge_project'> =>
  async ({ projectId }) => {
    if ((await purgeProject(pool, projectId)) === 'done') return
    log.info({ projectId }, 'the purse of a deleted project may have money: purse:sweep moves it')
  }
