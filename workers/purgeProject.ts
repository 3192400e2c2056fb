import { purgeProject as purge } from '../sql/purge.ts'
import type { Task } from './pool.ts'

/** Removes what a deleted project held. */
export const purgeProject: Task<'purge_project'> = async ({ projectId }, { pool }) => {
  await purge(pool, projectId)
}
