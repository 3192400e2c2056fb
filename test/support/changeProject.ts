import { type ProjectChange, updateProject } from '../../sql/account/projects/projects.ts'
import type { Pool } from '../../sql/db.ts'

/** Changes a project with the same function that the API routes for operators use. */
export const changeProject = (pool: Pool, projectId: string, change: ProjectChange) =>
  updateProject(pool, projectId, change, { projectId, keyPrefix: 'test', requestId: 'req_test' })
