import type { Queryable } from '../../db.ts'

/**
 * Reports that a project was deleted after the gate (the check of the API key) had accepted a request of this project.
 */
export class ProjectGoneError extends Error {}

/**
 * Locks a project's row until the end of the transaction. Therefore transactions that count rows of the project run one
 * after the other, and none of them stores a row that the erasure of the project would miss.
 * @throws {ProjectGoneError} if the project is deleted.
 */
export async function holdProject(db: Queryable, projectId: string): Promise<void> {
  const { rowCount } = await db.query(
    'select from projects where id = $1 and deleted_at is null for no key update',
    [projectId],
  )
  if (rowCount === 0) throw new ProjectGoneError()
}
