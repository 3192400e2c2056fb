/** Defines the roles of persons at the console. Each role may do everything that the previous role may do. */

/**
 * A `viewer` reads named projects, without secrets. An `owner` decides for named projects: settings, keys, secrets and
 * approvals. An `operator` does everything, for every project and for the service.
 */
export const ROLES = ['viewer', 'owner', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** Tells whether a role has at least the rights of the wanted role. */
export const isAtLeast = (role: Role, wanted: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(wanted)
