import type { Role } from '../../shared/people/roles.ts'
import type { Route } from '../docs/routeTable.ts'

type Settings = Partial<Pick<Route, 'framed' | 'form' | 'bodyMaxBytes'>>

/**
 * Returns the `detail` of a console route. The detail holds only settings of the gate, because console routes are
 * undocumented.
 */
const detailOf = (detail: Partial<Route>) => detail as unknown as { summary: string }

/**
 * Describes a console route for people with at least this role. If the path has `:projectId`, the person needs the role
 * in that project. Otherwise the route shows and changes only data of the person, unless the route is for operators.
 */
export const consoleOperation = (role: Role, settings: Settings = {}) =>
  detailOf({ ...settings, access: 'console', role })

/** Describes a console route that needs no session, such as a sign-in route, or a page that a link in a mail opens. */
export const openOperation = (settings: Settings = {}) =>
  detailOf({ ...settings, access: 'public' })
