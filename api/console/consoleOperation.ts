import type { Role } from '../../shared/people/roles.ts'
import type { Route } from '../docs/routeTable.ts'

type Settings = Partial<Pick<Route, 'framed' | 'form' | 'bodyMaxBytes'>>

/** The `detail` of a console route. It holds only settings of the gate; console routes are undocumented. */
const detailOf = (detail: Partial<Route>) => detail as unknown as { summary: string }

/**
 * A route for whoever has at least this role. One with `:projectId` asks for the role in that project. One without shows
 * and changes only the things of the asking person, unless it is for operators.
 */
export const consoleOperation = (role: Role, settings: Settings = {}) =>
  detailOf({ ...settings, access: 'console', role })

/** A route without a session: sign-in, and the pages behind links. */
export const openOperation = (settings: Settings = {}) =>
  detailOf({ ...settings, access: 'public' })
