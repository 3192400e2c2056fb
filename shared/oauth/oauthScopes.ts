/** Scopes that an owner may give to an OAuth client, in the words of the consent page (docs/agent.md). */
import { PROJECT_SCOPES, type Scope } from '../scopes.ts'

/** Scopes of a client that asks for none: the fewest that are useful. */
export const LEAST_SCOPES = ['mail:read', 'mail:send'] as const

/** What a consent may give. Secrets in the clear, payments and purses are for keys alone. */
export const OFFERED_SCOPES = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'mail:codes',
  'vault:use',
] as const satisfies readonly Scope[]

export type OfferedScope = (typeof OFFERED_SCOPES)[number]

/** A client that asks for it gets a refresh token; so does every other. */
export const OFFLINE_ACCESS = 'offline_access'

/** The texts of the consent page. `isTicked`: the box is ticked at the beginning. */
export const SCOPE_WORDS: Record<OfferedScope, { words: string; isTicked: boolean }> = {
  'mail:read': { words: 'read your mail', isTicked: true },
  'mail:send': { words: 'send mail, within the rules of the inbox', isTicked: true },
  'mail:manage': { words: 'change labels, rules and drafts, and delete mail', isTicked: false },
  'mail:codes': { words: 'read one-time codes from your mail', isTicked: false },
  'vault:use': {
    words: 'use your stored secrets at the hosts that they are for, without seeing them',
    isTicked: false,
  },
}

const KNOWN: readonly string[] = [...PROJECT_SCOPES, 'platform:manage', OFFLINE_ACCESS]

/** Longer lists of scopes are refused. */
export const SCOPE_MAX_CHARS = 1_000

/**
 * Reads the `scope` of a request (RFC 6749 §3.3). Scopes that no consent gives are left out.
 * @returns null: it names no scope that exists.
 */
export function readScopes(text: string | null): OfferedScope[] | null {
  const asked = (text ?? '').split(' ').filter((scope) => scope !== '')
  if (asked.every((scope) => scope === OFFLINE_ACCESS)) return [...LEAST_SCOPES]
  if (!asked.some((scope) => KNOWN.includes(scope))) return null
  return OFFERED_SCOPES.filter((scope) => asked.includes(scope))
}
