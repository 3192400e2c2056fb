import { addressKey, domainOf, parseAddress } from './address.ts'

export const RULE_TYPES = ['ALLOW', 'BLOCK'] as const
/**
 * Lists the scopes of email rules. RECEIVE rules are about the senders that the inbox accepts. SEND rules are about the
 * recipients that the inbox may write to. REPLY rules are about the senders that the inbox may reply to.
 */
export const RULE_SCOPES = ['RECEIVE', 'SEND', 'REPLY'] as const

export type RuleScope = (typeof RULE_SCOPES)[number]

export type Rule = {
  type: (typeof RULE_TYPES)[number]
  scope: RuleScope
  /** Holds the address that the email rule names, or `*@domain`, in lower case. */
  value: string
}

/** Reads the value of an email rule. @returns null if the text is neither one address nor a pattern `*@domain`. */
export function parseRuleValue(text: string): string | null {
  const address = parseAddress(text.replace(/^\*@/, 'any@'))
  if (address === null) return null
  return text.startsWith('*@') ? `*@${domainOf(address)}` : addressKey(address)
}

/**
 * Returns the type (ALLOW or BLOCK) of the email rule that decides about an address. An email rule for an address
 * overrides a rule for the domain of that address.
 * @param typeOf returns the type of the email rule that has a value, or undefined if no rule has the value.
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
 * Tells whether email rules allow an address. One ALLOW rule in a scope blocks every address for which no email rule
 * exists.
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
 * Tells whether the email rules of an inbox accept a message. If an inbox has ALLOW rules, they must name every author
 * of a message. ALLOW rules need not name the envelope sender, because envelope senders name the machines of mailing
 * services.
 */
const isReceived = (rules: readonly Rule[], senders: Senders): boolean =>
  !isBlocked(rules, senders) &&
  authorsOf(senders).every((author) => isAllowed(rules, 'RECEIVE', author))

/**
 * Names what happens to a received message. `store` means that the message is stored. `reduce` means that a proven
 * bounce is stored without its free text, because the allow list does not name its sender. `later` means that DNS
 * currently cannot tell whether an allowed author wrote the message.
 */
export type Admission = 'store' | 'reduce' | 'later' | 'discard'

/**
 * Tells whether the email rules refuse a message because of its addresses alone, before its sender is authenticated.
 */
export const isRefused = (
  rules: readonly Rule[],
  senders: Senders,
  { isProvenBounce }: { isProvenBounce: boolean },
): boolean => isBlocked(rules, senders) || !(isProvenBounce || isReceived(rules, senders))

/**
 * Decides by the email rules what happens to a message whose sender was authenticated. An ALLOW rule counts only for a
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
