import { addressKey, domainOf, parseAddress } from './address.ts'

export const RULE_TYPES = ['ALLOW', 'BLOCK'] as const
/** RECEIVE: whom the inbox hears. SEND: whom it writes to. REPLY: whom it answers. */
export const RULE_SCOPES = ['RECEIVE', 'SEND', 'REPLY'] as const

export type RuleScope = (typeof RULE_SCOPES)[number]

export type Rule = {
  type: (typeof RULE_TYPES)[number]
  scope: RuleScope
  /** An address, or `*@domain`, in lower case. */
  value: string
}

/** Reads what a rule is about; null unless it is one address or `*@domain`. */
export function parseRuleValue(text: string): string | null {
  const address = parseAddress(text.replace(/^\*@/, 'any@'))
  if (address === null) return null
  return text.startsWith('*@') ? `*@${domainOf(address)}` : addressKey(address)
}

/**
 * Whether rules let an address through. What is said of the address itself counts before what is said of its domain;
 * and where anything at all is allowed in that scope, whatever is not named is not.
 */
export function isAllowed(rules: readonly Rule[], scope: RuleScope, address: string): boolean {
  const own = rules.filter((rule) => rule.scope === scope)
  for (const value of [addressKey(address), `*@${domainOf(address)}`]) {
    const rule = own.find((one) => one.value === value)
    if (rule !== undefined) return rule.type === 'ALLOW'
  }
  return !own.some(({ type }) => type === 'ALLOW')
}

/**
 * Whether an inbox takes a message. A sender is blocked by the envelope as well as by From; allowed is who From names,
 * for envelopes name the machines of mailing services.
 */
export function isReceived(
  rules: readonly Rule[],
  { envelopeFrom, from }: { envelopeFrom: string; from: readonly string[] },
): boolean {
  const blocking = rules.filter(({ type }) => type === 'BLOCK')
  const authors = from.length > 0 ? from : [envelopeFrom]
  return (
    isAllowed(blocking, 'RECEIVE', envelopeFrom) &&
    authors.every((author) => isAllowed(rules, 'RECEIVE', author))
  )
}

/** Whether a rule names somebody who sent a message as one not to hear, rather than as none of those to hear. */
export const isBlocked = (
  rules: readonly Rule[],
  senders: { envelopeFrom: string; from: readonly string[] },
): boolean =>
  !isReceived(
    rules.filter(({ type }) => type === 'BLOCK'),
    senders,
  )
