/**
 * Lists the scopes of a project key (docs/contract.md §3). Every platform key has the scope `platform:manage`, and no
 * other key can have this scope.
 */

/** Lists the scopes that a new project key gets if its creator names no scopes. */
export const DEFAULT_SCOPES = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'mail:codes',
  'vault:read',
  'vault:write',
  'vault:use',
  'payments:accept',
] as const

/**
 * Lists the scopes of the purse (a project's spending wallet). A new project key gets the purse scopes only if its
 * creator names these scopes, because a key with purse:pay spends money.
 */
const PURSE_SCOPES = ['purse:read', 'purse:pay'] as const

export const PROJECT_SCOPES = [...DEFAULT_SCOPES, ...PURSE_SCOPES] as const

type ProjectScope = (typeof PROJECT_SCOPES)[number]

/**
 * Describes a scope that an operation of the API can require: either a scope of a project key, or the right to manage
 * projects.
 */
export type Scope = ProjectScope | 'platform:manage'
