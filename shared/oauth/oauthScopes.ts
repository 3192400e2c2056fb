/** Lists the scopes that an owner may give to an OAuth client, in the words of the consent page (docs/agent.md). */
import { PROJECT_SCOPES, type Scope } from '../scopes.ts'

/** Lists the scopes of a client that asks for none. They are the fewest that are useful. */
export const LEAST_SCOPES = ['mail:read', 'mail:send'] as const

/** Lists what every consent may give. Only keys can read secrets in clear text and make payments. */
const ALWAYS_OFFERED = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'mail:codes',
  'vault:use',
] as const satisfies readonly Scope[]

/**
 * Lists what a consent may give in addition if the operator allows it (OAUTH_PURSE_SCOPES). The operator must allow it
 * because a chat host then spends money.
 */
export const PURSE_CONSENT = ['purse:read', 'purse:pay'] as const satisfies readonly Scope[]

export type PurseConsent = (typeof PURSE_CONSENT)[number]
export type OfferedScope = (typeof ALWAYS_OFFERED)[number] | PurseConsent

/** Lists all scopes that a consent may give at this service. */
export const offeredScopes = (purse: readonly PurseConsent[]): OfferedScope[] => [
  ...ALWAYS_OFFERED,
  ...PURSE_CONSENT.filter((scope) => purse.includes(scope)),
]

/** A client that asks for this scope gets a refresh token. So does every other client. */
export const OFFLINE_ACCESS = 'offline_access'

/** Holds the texts of the consent page. `isTicked` means that the box is ticked at the beginning. */
export const SCOPE_WORDS: Record<OfferedScope, { words: string; isTicked: boolean }> = {
  'mail:read': { words: 'read your mail', isTicked: true },
  'mail:send': { words: 'send mail, within the rules of the inbox', isTicked: true },
  'mail:manage': { words: 'change labels, rules and drafts, and delete mail', isTicked: false },
  'mail:codes': { words: 'read one-time codes from your mail', isTicked: false },
  'vault:use': {
    words: 'use your stored secrets at the hosts that they are for, without seeing them',
    isTicked: false,
  },
  'purse:read': { words: 'see the purse, its payments and prices', isTicked: false },
  'purse:pay': { words: 'spend money from the purse, within its mandates', isTicked: false },
}

const KNOWN: readonly string[] = [...PROJECT_SCOPES, 'platform:manage', OFFLINE_ACCESS]

/** Limits the characters of a scope list. Longer lists are refused. */
export const SCOPE_MAX_CHARS = 1_000

/**
 * Reads the `scope` of a request (RFC 6749 §3.3). Scopes that no consent gives are left out.
 * @param offered the scopes that this service offers.
 * @returns null if the text names no scope that exists.
 */
export function readScopes(
  text: string | null,
  offered: readonly OfferedScope[],
): OfferedScope[] | null {
  const asked = (text ?? '').split(' ').filter((scope) => scope !== '')
  if (asked.every((scope) => scope === OFFLINE_ACCESS)) return [...LEAST_SCOPES]
  if (!asked.some((scope) => KNOWN.includes(scope))) return null
  return offered.filter((scope) => asked.includes(scope))
}
