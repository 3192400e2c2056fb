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
function isReceived(rules: readonly Rule[], { envelopeFrom, from }: Senders): boolean {
  const blocking = rules.filter(({ type }) => type === 'BLOCK')
  const authors = from.length > 0 ? from : [envelopeFrom]
  return (
    isAllowed(blocking, 'RECEIVE', envelopeFrom) &&
    authors.every((author) => isAllowed(rules, 'RECEIVE', author))
  )
}

type Senders = { envelopeFrom: string; from: readonly string[] }

/** Whether a BLOCK rule refuses the message; a missing ALLOW rule does not count. */
const isBlocked = (rules: readonly Rule[], senders: Senders): boolean =>
  !isReceived(
    rules.filter(({ type }) => type === 'BLOCK'),
    senders,
  )

/**
 * The fate of a message. `store`: it is stored. `reduce`: a proven bounce passes an allow list without free text.
 * `later`: the DNS cannot say now whether an allowed author wrote it.
 */
export type Admission = 'store' | 'reduce' | 'later' | 'discard'

/** Whether a message is refused without a check of its sender. */
export const isRefused = (
  rules: readonly Rule[],
  senders: Senders,
  { isProvenBounce }: { isProvenBounce: boolean },
): boolean => isBlocked(rules, senders) || !(isProvenBounce || isReceived(rules, senders))

/** The fate of a message with a checked sender. An ALLOW rule is for its author: anyone can write an allowed From. */
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
