/** The verdict words of RFC 8601 §2.7. */
const AUTHENTICATION_WORDS = [
  'none',
  'pass',
  'fail',
  'policy',
  'neutral',
  'softfail',
  'temperror',
  'permerror',
] as const

export type AuthenticationWord = (typeof AUTHENTICATION_WORDS)[number]

/** What is known of who sent a message: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 7489), ARC (RFC 8617). */
export type Authentication = {
  spf: AuthenticationWord
  dkim: AuthenticationWord
  dmarc: AuthenticationWord
  arc: AuthenticationWord
  /** It came from an inbox of this service, whose key its sender holds; then nothing else was checked. */
  internal: boolean
}

const unchecked = (word: AuthenticationWord, internal: boolean): Authentication => ({
  spf: word,
  dkim: word,
  dmarc: word,
  arc: word,
  internal,
})

/** Of a message between two inboxes of this service. */
export const INTERNAL = unchecked('none', true)
/** Of a message about which nothing is known. */
export const UNCHECKED = unchecked('temperror', false)
/** Of a message that the checks cannot read. */
export const UNREADABLE = unchecked('permerror', false)

/** Any other word is one of ours gone wrong. */
export const authenticationWord = (word: string | undefined): AuthenticationWord =>
  AUTHENTICATION_WORDS.find((known) => known === word) ?? 'none'

/** The label of a message whose From cannot be believed. */
export const UNAUTHENTICATED_LABEL = 'unauthenticated'

/**
 * Whether the sender may be somebody else than From says: DMARC fails or cannot be applied to such a From, or the message
 * names an address of ours and did not come from us.
 */
export function isForged(
  authentication: Authentication,
  { fromDomains, ownDomains }: { fromDomains: readonly string[]; ownDomains: readonly string[] },
): boolean {
  const { internal, dmarc } = authentication
  if (internal || dmarc === 'pass') return false
  if (dmarc === 'fail' || dmarc === 'permerror') return true
  return fromDomains.some((domain) => ownDomains.includes(domain))
}
