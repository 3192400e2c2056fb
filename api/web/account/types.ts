/** Describes the responses of the service about people and connected apps. */
import type { Role } from '../kit/types.ts'

/** Describes a session in the list of sessions. */
export type ListedSession = {
  sessionId: string
  personId: string
  name: string
  email: string | null
  method: 'link' | 'mail' | 'passkey' | 'company'
  agent: string | null
  isThis: boolean
  createdAt: string
  lastSeenAt: string
  expiresAt: string
}

export type Person = {
  personId: string
  name: string
  email: string | null
  role: Role
  projectIds: string[]
  passkeys: number
  isFirst: boolean
  createdAt: string
  signedInAt: string | null
}

export type Passkey = { passkeyId: string; name: string; createdAt: string; usedAt: string | null }

/** Tells which ways of signing in the service offers. */
export type SignInWays = { passkeys: boolean; company: string | null }

/**
 * Describes the OAuth consent request of an app. If `clientHost` is `null`, the app has registered itself, so nobody
 * has verified its name.
 */
export type ConnectRequest = {
  clientName: string
  clientHost: string | null
  redirectHost: string
  scopes: { scope: string; words: string; isTicked: boolean }[]
}

export type ConnectedApp = {
  id: string
  projectId: string
  inboxAddress: string
  clientName: string
  clientHost: string | null
  redirectHost: string
  scopes: string[]
  holdsMail: boolean
  expiresAt: string
  usedAt: string | null
}
