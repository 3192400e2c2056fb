/** Describes the responses of the service about the purse, but only with the fields that the console reads. */

export type Purse = {
  address: string
  balanceUsdc: string | null
  balanceBlock: number | null
  balanceAt: string | null
  openUsdc: string
  freeUsdc: string
  lowUsdc: string | null
  maxUsdc: string | null
  payout: { address: string | null; next: { address: string; from: string } | null }
  stoppedAt: string | null
}

export type Mandate = {
  mandateId: string
  state: 'active' | 'stopped' | 'ended'
  name: string
  hosts: string[]
  resources: string[]
  payees: string[] | null
  maxPerPayment: string
  maxPerHour: string | null
  maxPerDay: string | null
  maxPerMonth: string | null
  maxTotal: string | null
  paymentsPerMinute: number
  askAbove: string | null
  risePercent: number
  validUntil: string | null
  openUsdc: string
  spentUsdc: string
}

export type Purchase = {
  purchaseId: string
  state: string
  reason: string | null
  host: string
  path: string
  method: string
  tool: string | null
  credential: string | null
  status: number | null
  why: string | null
  terms: {
    amountUsdc: string
    payTo: string
    network: string
    resource: string | null
    description: string | null
  } | null
  payment: {
    state: string
    final: boolean
    paidWithoutContent: boolean
    txHash: string | null
  } | null
  createdAt: string
}

export type AskedPayment = {
  approvalId: string
  askedFor: 'above_limit' | 'new_payee' | 'price_rose'
  sha256: string
  purchase: Purchase
  /** Only the response for a single approval request has this field, and not the list of approval requests. */
  request?: { url: string; headers: Record<string, string>; body: string | null } | null
  requestedAt: string
  expiresAt: string
}

type Sum = { amountUsdc: string; amountUsdcRaw: string; count: number }

export type Spending = {
  byDay: (Sum & { day: string })[]
  byHost: (Sum & { host: string; withoutContent: number })[]
}
