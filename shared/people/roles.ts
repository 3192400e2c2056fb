/** What a person may do at the console. Each role may do all that the one before it may. */

/**
 * `viewer` reads named projects, without secrets. `owner` decides for named projects: settings, keys, secrets and
 * approvals. `operator` does everything, for every project and for the service.
 */
export const ROLES = ['viewer', 'owner', 'operator'] as const
export type Role = (typeof ROLES)[number]

/** Whether a role may do what asks for at least another one. */
export const isAtLeast = (role: Role, wanted: Role): boolean =>
  ROLES.indexOf(role) >= ROLES.indexOf(wanted)
