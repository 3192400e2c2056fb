/**
 * Lists the scopes of a project key (docs/contract.md §3). Every platform key has `platform:manage`, which is never
 * granted.
 */

/** A new key has these scopes unless it asks for others. */
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

/** An owner gives these scopes only by name, because a key with purse:pay spends money. */
const PURSE_SCOPES = ['purse:read', 'purse:pay'] as const

export const PROJECT_SCOPES = [...DEFAULT_SCOPES, ...PURSE_SCOPES] as const

type ProjectScope = (typeof PROJECT_SCOPES)[number]

/** Is a scope that an operation can require: a project scope, or the right to manage projects. */
export type Scope = ProjectScope | 'platform:manage'
