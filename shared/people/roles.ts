/** Defines the roles of persons at the console. Each role in the list of roles has all rights of the previous role. */

/**
 * Lists the roles. A `viewer` can read the projects that are assigned to the viewer, but can read no secrets. An
 * `owner` can also change the settings, keys and secrets of the projects that are assigned to the owner, and decides
 * approval requests. An `operator` may do everything in every project and in the service.
 */
export const ROLES = ['viewer', 'owner', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** Tells whether a role has at least the rights of another role. */
export const isAtLeast = (role: Role, wanted: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(wanted)
