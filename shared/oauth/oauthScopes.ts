/** Lists the scopes that an owner may give to an OAuth client, in the words of the consent page (docs/agent.md). */
import { PROJECT_SCOPES, type Scope } from '../scopes.ts'

/**
 * Lists the scopes that an OAuth client gets if the client requests no scopes. The list holds the smallest useful set
 * of scopes.
 */
export const LEAST_SCOPES = ['mail:read', 'mail:send'] as const

/**
 * Lists the scopes that every owner may give to an OAuth client. With these scopes, a client can neither read secrets
 * in clear text nor make payments.
 */
const ALWAYS_OFFERED = [
  'mail:read',
  'mail:send',
  'mail:manage',
  'mail:codes',
  'vault:use',
] as const satisfies readonly Scope[]

/**
 * Lists the scopes of the purse (a project's spending wallet). An owner may give such a scope to an OAuth client only
 * if the operator allows it in OAUTH_PURSE_SCOPES, because a chat host with purse:pay spends money.
 */
export const PURSE_CONSENT = ['purse:read', 'purse:pay'] as const satisfies readonly Scope[]

export type PurseConsent = (typeof PURSE_CONSENT)[number]
export type OfferedScope = (typeof ALWAYS_OFFERED)[number] | PurseConsent

/** Lists all scopes that an owner may give to an OAuth client of this service. */
export const offeredScopes = (purse: readonly PurseConsent[]): OfferedScope[] => [
  ...ALWAYS_OFFERED,
  ...PURSE_CONSENT.filter((scope) => purse.includes(scope)),
]

/**
 * Holds the scope with which a client asks for a refresh token. Every client gets a refresh token, even without a
 * request for this scope.
 */
export const OFFLINE_ACCESS = 'offline_access'

/**
 * Holds the texts of the consent page for each scope. The field `isTicked` tells whether the checkbox of the scope is
 * ticked when the page opens.
 */
export const SCOPE_WORDS: Record<OfferedScope, { words: string; isTicked: boolean }> = {
  'mail:read': { words: 'read your mail', isTicked: true },
  'mail:send': { words: 'send mail, within the rules of the inbox', isTicked: true },
  'mail:manage': { words: 'change labels, rules and drafts, and delete mail', isTicked: false },
  'mail:codes': {
    words: 'read one-time codes from your mail, and its links for sign-in and password reset',
    isTicked: false,
  },
  'vault:use': {
    words:
      'use your stored secrets at their hosts, and sign any text with them, without seeing them',
    isTicked: false,
  },
  'purse:read': { words: 'see the purse, its payments and prices', isTicked: false },
  'purse:pay': { words: 'spend money from the purse, within its mandates', isTicked: false },
}

const KNOWN: readonly string[] = [...PROJECT_SCOPES, 'platform:manage', OFFLINE_ACCESS]

/** Sets the maximum number of characters of a list of OAuth scopes. The service refuses a longer list of scopes. */
export const SCOPE_MAX_CHARS = 1_000

/**
 * Reads the `scope` of an OAuth request (RFC 6749 §3.3). The result omits the scopes that no owner can give. A request
 * for `mail:codes` also asks for `mail:read`, because an owner can give `mail:codes` only together with `mail:read`.
 * @param offered lists the scopes that owners may give at this service.
 * @returns null if the text names no scope that this service knows.
 */
export function readScopes(
  text: string | null,
  offered: readonly OfferedScope[],
): OfferedScope[] | null {
  const asked = (text ?? '').split(' ').filter((scope) => scope !== '')
  if (asked.every((scope) => scope === OFFLINE_ACCESS)) return [...LEAST_SCOPES]
  if (!asked.some((scope) => KNOWN.includes(scope))) return null
  if (asked.includes('mail:codes')) asked.push('mail:read')
  return offered.filter((scope) => asked.includes(scope))
}
