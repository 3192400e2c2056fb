import type { Role } from '../../shared/people/roles.ts'
import type { Route } from '../docs/routeTable.ts'

type Settings = Partial<Pick<Route, 'framed' | 'form' | 'page' | 'openBody' | 'bodyMaxBytes'>>

/**
 * Returns the `detail` object, which holds the settings of a console route for the gate (the checks before every
 * handler). It needs no other fields, because console routes are undocumented.
 */
const detailOf = (detail: Partial<Route>) => detail as unknown as { summary: string }

/**
 * Describes a console route that only a person with at least the given role may use. If the path contains `:projectId`,
 * the person needs the role in this project. A route without `:projectId` is for operators, or concerns only the
 * person's own data.
 */
export const consoleOperation = (role: Role, settings: Settings = {}) =>
  detailOf({ ...settings, access: 'console', role })

/** Describes a console route that needs no session, such as a sign-in route, or a page behind a link in a mail. */
export const openOperation = (settings: Settings = {}) =>
  detailOf({ ...settings, access: 'public' })
