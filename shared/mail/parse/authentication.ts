/** The verdict words of RFC 8601 §2.7. */
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

/** The results of sender authentication: SPF (RFC 7208), DKIM (RFC 6376), DMARC (RFC 7489), ARC (RFC 8617). */
export type Authentication = {
  spf: AuthenticationWord
  dkim: AuthenticationWord
  dmarc: AuthenticationWord
  arc: AuthenticationWord
  /** An inbox of this service sent the message. The other checks did not run: the sender holds the inbox's key. */
  internal: boolean
  /**
   * What the mail service that handed the message over by HTTP says about SPF. Nothing else follows from it: `spf` is
   * then `none`, because the client's address is gone.
   */
  providerSpf?: AuthenticationWord
  /**
   * SPF or DKIM passes for the domain in From, with or without a DMARC policy; or the mail is internal. Absent: an earlier
   * version stored the message.
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

/** The results for a message between two inboxes of this service. */
export const INTERNAL = unchecked('none', true)
/** The results for a message that was not checked. */
export const UNCHECKED = unchecked('temperror', false)
/** The results for a message that the checks cannot read. */
export const UNREADABLE = unchecked('permerror', false)

/** `none` for a word that RFC 8601 does not define. */
export const authenticationWord = (word: string | undefined): AuthenticationWord =>
  AUTHENTICATION_WORDS.find((known) => known === word) ?? 'none'

/** The label of a message whose From is not authenticated. */
export const UNAUTHENTICATED_LABEL = 'unauthenticated'

/** The results, and whether they vouch for the author. */
export type CheckedSender = {
  authentication: Authentication
  /** SPF or DKIM passes for the domain in From (RFC 7489 §3.1), with or without a DMARC policy; or the mail is internal. */
  isAligned: boolean
}

/** Whether a check found no answer: asked again, it may find one. */
export const isUnsure = ({ spf, dkim, dmarc }: Authentication): boolean =>
  [spf, dkim, dmarc].includes('temperror')

/**
 * Whether From may be forged: nothing vouches for its domain, DMARC fails or does not apply to this From, or outside mail
 * names an address of ours.
 */
export function isForged(
  { authentication, isAligned }: CheckedSender,
  { fromDomains, ownDomains }: { fromDomains: readonly string[]; ownDomains: readonly string[] },
): boolean {
  const { internal, dmarc } = authentication
  if (internal || dmarc === 'pass') return false
  // Mail without From claims nothing.
  if (dmarc === 'fail' || dmarc === 'permerror' || (!isAligned && fromDomains.length > 0))
    return true
  return fromDomains.some((domain) => ownDomains.includes(domain))
}
