/** The role of the person who is signed in. The service checks it again at each request. */
import type { Role } from './types.ts'

const ROLES: readonly Role[] = ['viewer', 'owner', 'operator']

let current: Role = 'viewer'

export function setRole(role: Role): void {
  current = role
}

/** Whether the person may do what asks for at least this role. */
export const may = (wanted: Role): boolean => ROLES.indexOf(current) >= ROLES.indexOf(wanted)
