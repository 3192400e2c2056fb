/** The scopes of a project key (docs/contract.md §3). Every platform key has `platform:manage`; it is never granted. */
export const PROJECT_SCOPES = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'mail:codes',
  'vault:read',
  'vault:write',
  'vault:use',
  'payments:accept',
] as const

type ProjectScope = (typeof PROJECT_SCOPES)[number]

/** The scope an operation can require: a project scope, or the right to manage projects. */
export type Scope = ProjectScope | 'platform:manage'
