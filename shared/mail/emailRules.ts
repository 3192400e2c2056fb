import { addressKey, domainOf, parseAnyAddress } from './address.ts'

export const RULE_TYPES = ['ALLOW', 'BLOCK'] as const
/**
 * Lists the scopes of email rules. RECEIVE rules decide about the senders of received mail. SEND rules decide about the
 * recipients of sent mail. REPLY rules decide about the recipients of replies.
 */
export const RULE_SCOPES = ['RECEIVE', 'SEND', 'REPLY'] as const

export type RuleScope = (typeof RULE_SCOPES)[number]

export type Rule = {
  type: (typeof RULE_TYPES)[number]
  scope: RuleScope
  /** Holds the address of the email rule, or `*@domain`, in lower case. */
  value: string
}

/** Reads the value of an email rule. @returns null if the text is neither one address nor a pattern `*@domain`. */
export function parseRuleValue(text: string): string | null {
  const address = parseAnyAddress(text.replace(/^\*@/, 'any@'))
  if (address === null) return null
  return text.startsWith('*@') ? `*@${domainOf(address)}` : addressKey(address)
}

/**
 * Returns the type (ALLOW or BLOCK) of the email rule that decides about an address. A rule for the address itself
 * overrides a rule for its domain.
 * @param typeOf returns the type of the email rule with the given value, or undefined if no email rule has the value.
 */
export const decidingType = (
  address: string,
  typeOf: (value: string) => Rule['type'] | undefined,
): Rule['type'] | null => typeOf(addressKey(address)) ?? typeOf(`*@${domainOf(address)}`) ?? null

const ruleFor = (rules: readonly Rule[], scope: RuleScope, address: string): Rule['type'] | null =>
  decidingType(
    address,
    (value) => rules.find((rule) => rule.scope === scope && rule.value === value)?.type,
  )

/**
 * Tells whether email rules allow an address. If a scope has at least one ALLOW rule, every address without a rule in
 * this scope is blocked.
 */
export function isAllowed(rules: readonly Rule[], scope: RuleScope, address: string): boolean {
  const type = ruleFor(rules, scope, address)
  if (type !== null) return type === 'ALLOW'
  return !rules.some((rule) => rule.scope === scope && rule.type === 'ALLOW')
}

type Senders = { envelopeFrom: string; from: readonly string[] }

const authorsOf = ({ envelopeFrom, from }: Senders): readonly string[] =>
  from.length > 0 ? from : [envelopeFrom]

/** Tells whether a BLOCK rule applies to the envelope sender or to an author of the message. */
const isBlocked = (rules: readonly Rule[], senders: Senders): boolean =>
  [senders.envelopeFrom, ...authorsOf(senders)].some(
    (address) => ruleFor(rules, 'RECEIVE', address) === 'BLOCK',
  )

/**
 * Tells whether the email rules of an inbox accept a message. If the inbox has ALLOW rules, they must name every author
 * of the message. They need not name the envelope sender, which may be a machine of a mailing service.
 */
const isReceived = (rules: readonly Rule[], senders: Senders): boolean =>
  !isBlocked(rules, senders) &&
  authorsOf(senders).every((author) => isAllowed(rules, 'RECEIVE', author))

/**
 * Names the decision about a received message. With `store`, the service stores the message. With `reduce`, the service
 * stores a proven bounce without its free text, because the allow list does not name the bounce's sender. With `later`,
 * the service must decide again later, because DNS currently cannot tell whether an allowed author wrote the message.
 */
export type Admission = 'store' | 'reduce' | 'later' | 'discard'

/** Tells whether the email rules refuse a message by its addresses alone, before the authentication of the sender. */
export const isRefused = (
  rules: readonly Rule[],
  senders: Senders,
  { isProvenBounce }: { isProvenBounce: boolean },
): boolean => isBlocked(rules, senders) || !(isProvenBounce || isReceived(rules, senders))

/**
 * Decides by the email rules about a message after the authentication of the sender. An ALLOW rule counts only for a
 * proven author, because anyone can write an allowed address into From.
 */
export function admit(
  rules: readonly Rule[],
  senders: Senders,
  sender: { isProvenBounce: boolean; isAligned: boolean; isUnsure: boolean },
): Admission {
  const hasAllowList = rules.some(({ scope, type }) => scope === 'RECEIVE' && type === 'ALLOW')
  const isNamed = isReceived(rules, senders)
  if (!hasAllowList || (isNamed && sender.isAligned)) return 'store'
  if (sender.isProvenBounce) return 'reduce'
  return isNamed && sender.isUnsure ? 'later' : 'discard'
}
