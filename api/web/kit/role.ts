/** Holds the role of the person who is signed in to the console. The service checks this role again at each request. */
import type { Role } from './types.ts'

const ROLES: readonly Role[] = ['viewer', 'owner', 'operator']

let current: Role = 'viewer'

export function setRole(role: Role): void {
  current = role
}

/** Tells whether the role of the signed-in person is at least the wanted role. */
export const may = (wanted: Role): boolean => ROLES.indexOf(current) >= ROLES.indexOf(wanted)
