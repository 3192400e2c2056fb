/** Defines the roles of persons at the console. Each role in the list also has all rights of the role before it. */

/**
 * Lists the roles. A `viewer` can read the projects that are assigned to the viewer, but no secrets. An `owner` also
 * decides approval requests, and can change the settings, keys and secrets of the assigned projects. An `operator` may
 * do everything in every project and in the service.
 */
export const ROLES = ['viewer', 'owner', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** Tells whether a role has at least the rights of another role. */
export const isAtLeast = (role: Role, wanted: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(wanted)
