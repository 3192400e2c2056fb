/**
 * Maps each reason why the purse (a project's wallet) refuses a purchase to a sentence for the agent. In each of these
 * cases, the purse signs nothing.
 */
const REFUSALS = {
  no_purse: 'the project has no purse: its owner can open one',
  frozen: 'the owner has stopped the purse',
  not_in_mandate: 'no active mandate covers this host: the owner can give one',
  payee_not_in_mandate: 'the seller asks for a payment to an address that a mandate does not allow',
  mandate_exceeded: 'the price is above what a mandate still allows',
  too_many_payments: 'a mandate allows no further payment in this minute',
  max_amount_exceeded: 'the price is above maxAmount',
  insufficient_funds: 'the balance of the purse does not cover the price',
  too_many_open: 'too many signed payments of the purse wait for their sellers',
  too_much_gas: 'the cancellations and transfers of the purse have used up its gas of the day',
  payee_denied: 'the operator denies payments to this address',
  bad_payee:
    'the payee is the token, the purse itself or the zero address, or shows a secret of the request',
  no_offer: 'the seller offers no exact payment in USDC on the chain of the service',
  malformed_challenge: 'the 402 of the seller is no x402 challenge',
  token_mismatch: 'the seller names another token than USDC on this chain',
  bad_window: 'the seller allows less than 15 seconds, or no time at all',
  resource_of_another_host: 'the 402 names a resource of another host',
  terms_changed: 'the seller asks for other terms than those that the owner approved',
  rejected: 'the owner rejected the payment',
  approval_expired: 'nobody decided in time',
  credential: 'the credential of the vault does not allow this request, or is gone',
  no_chain: 'the service has not reached its chain yet',
} as const

export type RefusalReason = keyof typeof REFUSALS

export const refusalText = (reason: RefusalReason): string => REFUSALS[reason]
export const REFUSAL_REASONS = Object.keys(REFUSALS) as RefusalReason[]
