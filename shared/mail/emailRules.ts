import { addressKey, domainOf, parseAddress } from './address.ts'

export const RULE_TYPES = ['ALLOW', 'BLOCK'] as const
/** RECEIVE: senders the inbox accepts. SEND: recipients it may write to. REPLY: senders it may answer. */
export const RULE_SCOPES = ['RECEIVE', 'SEND', 'REPLY'] as const

export type RuleScope = (typeof RULE_SCOPES)[number]

export type Rule = {
  type: (typeof RULE_TYPES)[number]
  scope: RuleScope
  /** An address, or `*@domain`, in lower case. */
  value: string
}

/** Reads the value of a rule; null: neither one address nor `*@domain`. */
export function parseRuleValue(text: string): string | null {
  const address = parseAddress(text.replace(/^\*@/, 'any@'))
  if (address === null) return null
  return text.startsWith('*@') ? `*@${domainOf(address)}` : addressKey(address)
}

/**
 * Whether rules allow an address. A rule for the address overrides a rule for its domain. One ALLOW rule in a scope
 * blocks every address that no rule names.
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
 * Whether an inbox accepts a message. BLOCK rules match the envelope sender and From. ALLOW rules match From only:
 * envelope senders name the machines of mailing services.
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

/** Whether a BLOCK rule refuses the message; a missing ALLOW rule does not count. */
export const isBlocked = (
  rules: readonly Rule[],
  senders: { envelopeFrom: string; from: readonly string[] },
): boolean =>
  !isReceived(
    rules.filter(({ type }) => type === 'BLOCK'),
    senders,
  )
