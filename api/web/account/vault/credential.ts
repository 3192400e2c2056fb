/** Describes a credential without its secret, with the fields that the console page shows. */
export type Credential = {
  name: string
  type: string
  version: number
  metadata: Record<string, unknown>
  expiresAt: string | null
  allowedHosts: string[]
  allowedMethods: string[]
  allowedPaths: string[]
  placement: string[]
  reveal: 'agent' | 'owner'
  lastUsedAt: string | null
  lastRotatedAt: string | null
  createdAt: string
}
