/** Lists the result words of email authentication (RFC 8601 §2.7). */
export const AUTHENTICATION_WORDS = [
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

/** Holds the results of sender authentication: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 7489), ARC (RFC 8617). */
export type Authentication = {
  spf: AuthenticationWord
  dkim: AuthenticationWord
  dmarc: AuthenticationWord
  arc: AuthenticationWord
  /**
   * Tells whether an inbox of this service sent the message. The service then checks no SPF, DKIM or DMARC, because the
   * sender has used the inbox's API key.
   */
  internal: boolean
  /**
   * Holds the SPF result of the mail provider that delivered the message over HTTP. The service only shows this result
   * and decides nothing by it. The service's own result `spf` is then `none`, because it does not know the IP address
   * of the sending host.
   */
  providerSpf?: AuthenticationWord
  /**
   * Tells whether the domain in From is proven. This is the case if SPF or DKIM passes for the domain, even without a
   * DMARC policy, or if the mail is internal. The field `aligned` is absent if an earlier version of the service stored
   * the message.
   */
  aligned?: boolean
}

const unchecked = (word: AuthenticationWord, internal: boolean): Authentication => ({
  spf: word,
  dkim: word,
  dmarc: word,
  arc: word,
  internal,
})

/** Holds the authentication results for a message between two inboxes of this service. */
export const INTERNAL = unchecked('none', true)
/** Holds the authentication results of a message for which the service did not check SPF, DKIM and DMARC. */
export const UNCHECKED = unchecked('temperror', false)
/** Holds the authentication results of a message that the checks cannot read. */
export const UNREADABLE = unchecked('permerror', false)

/** Reads a result word of email authentication. @returns `none` if RFC 8601 does not define the word. */
export const authenticationWord = (word: string | undefined): AuthenticationWord =>
  AUTHENTICATION_WORDS.find((known) => known === word) ?? 'none'

/** Holds the label of a message with an unauthenticated From field. */
export const UNAUTHENTICATED_LABEL = 'unauthenticated'

/**
 * Holds the authentication results of a message, and tells whether the results prove that the author in From wrote the
 * message.
 */
export type CheckedSender = {
  authentication: Authentication
  /**
   * Tells whether SPF or DKIM proves the domain in From (RFC 7489 §3.1), or an inbox of this service sent the mail. The
   * domain in From needs no DMARC policy for this proof.
   */
  isAligned: boolean
}

/** Tells whether an authentication check got no DNS answer. A later check may then have another result. */
export const isUnsure = ({ spf, dkim, dmarc }: Authentication): boolean =>
  [spf, dkim, dmarc].includes('temperror')

/**
 * Tells whether the address in From may be forged. It may be forged if nothing proves its domain, or if DMARC fails or
 * finds a malformed policy. It may also be forged if a mail from outside has an address of this service in From.
 */
export function isForged(
  { authentication, isAligned }: CheckedSender,
  { fromDomains, ownDomains }: { fromDomains: readonly string[]; ownDomains: readonly string[] },
): boolean {
  const { internal, dmarc } = authentication
  if (internal || dmarc === 'pass') return false
  // A mail without a From field claims no author. Therefore it does not count as forged.
  if (dmarc === 'fail' || dmarc === 'permerror' || (!isAligned && fromDomains.length > 0))
    return true
  return fromDomains.some((domain) => ownDomains.includes(domain))
}
