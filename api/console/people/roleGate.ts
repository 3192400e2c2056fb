/** Which person may use which route of the console. */
import { isAtLeast, type Role } from '../../../shared/people/roles.ts'
import type { Person } from '../../../sql/account/people/people.ts'
import { ApiError, notFound } from '../../http/errors.ts'

/** Whether a person sees a project. */
const sees = ({ role, projectIds }: Person, projectId: string): boolean =>
  role === 'operator' || projectIds.includes(projectId)

/** Whether a person decides for a project. */
export const decidesFor = (person: Person, projectId: string): boolean =>
  isAtLeast(person.role, 'owner') && sees(person, projectId)

/**
 * Refuses a person without the role. A project outside the person's projects answers 404, so it stays unknown.
 * @param projectId of the route's path; null: the path names none.
 * @throws {ApiError} 403, 404
 */
export function requireRole(
  person: Person,
  { role, projectId }: { role: Role; projectId: string | null },
): void {
  if (projectId !== null && !sees(person, projectId)) throw notFound('Project not found')
  if (isAtLeast(person.role, role)) return
  throw new ApiError(403, 'forbidden', `This needs the role ${role}. Yours is ${person.role}`)
}

/** The value of `:projectId` in a path; null: the route has none. @throws {ApiError} 404 for a malformed one */
export function projectOfPath(routePath: string, pathname: string): string | null {
  const position = routePath.split('/').indexOf(':projectId')
  if (position === -1) return null
  try {
    return decodeURIComponent(pathname.split('/')[position] ?? '')
  } catch {
    throw notFound()
  }
}
