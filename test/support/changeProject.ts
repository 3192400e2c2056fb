import { type ProjectChange, updateProject } from '../../sql/account/projects/projects.ts'
import type { Pool } from '../../sql/db.ts'

/** Changes a project with the function that the routes of the operator use. */
export const changeProject = (pool: Pool, projectId: string, change: ProjectChange) =>
  updateProject(pool, projectId, change, { projectId, keyPrefix: 'test', requestId: 'req_test' })
