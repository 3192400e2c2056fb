/** The scopes a project key may hold (contract §3). `platform:manage` is implied by a platform key and never granted. */
export const PROJECT_SCOPES = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'vault:read',
  'vault:write',
  'payments:accept',
] as const

type ProjectScope = (typeof PROJECT_SCOPES)[number]

/** What an operation can ask for: one of the project scopes, or the right to manage projects. */
export type Scope = ProjectScope | 'platform:manage'
