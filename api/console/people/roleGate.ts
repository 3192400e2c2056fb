/** Decides which routes of the console a person may use. */
import { isAtLeast, type Role } from '../../../shared/people/roles.ts'
import type { Person } from '../../../sql/account/people/people.ts'
import { ApiError, notFound } from '../../http/errors.ts'

/** Tells whether a person may see a project. */
const sees = ({ role, projectIds }: Person, projectId: string): boolean =>
  role === 'operator' || projectIds.includes(projectId)

/** Tells whether a person may approve or reject the held mail and the waiting payments of a project. */
export const decidesFor = (person: Person, projectId: string): boolean =>
  isAtLeast(person.role, 'owner') && sees(person, projectId)

/**
 * Refuses a person without the required role. If the person cannot see the requested project, the response is 404, so
 * that the project's existence stays secret.
 * @param projectId is the project that the path of the console route names. The project id is `null` if the path of the
 * console route names no project.
 * @throws {ApiError} 403 for a role that is too low, 404 for a project that the person cannot see.
 */
export function requireRole(
  person: Person,
  { role, projectId }: { role: Role; projectId: string | null },
): void {
  if (projectId !== null && !sees(person, projectId)) throw notFound('Project not found')
  if (isAtLeast(person.role, role)) return
  throw new ApiError(403, 'forbidden', `This needs the role ${role}. Yours is ${person.role}`)
}

/**
 * Returns the value of the parameter `:projectId` in the path of a request. Returns `null` if the route has no
 * parameter `:projectId`.
 * @throws {ApiError} 404 for a project id with a malformed percent-encoding.
 */
export function projectOfPath(routePath: string, pathname: string): string | null {
  const position = routePath.split('/').indexOf(':projectId')
  if (position === -1) return null
  try {
    return decodeURIComponent(pathname.split('/')[position] ?? '')
  } catch {
    throw notFound()
  }
}
