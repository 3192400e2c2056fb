import type { Scope } from '../scopes.ts'

/** What can happen in a project, and the scope that may hear of it. */
export const EVENT_SCOPES = {
  'message.received': 'mail:read',
  'message.sent': 'mail:read',
  'message.failed': 'mail:read',
  'message.bounced': 'mail:read',
  'payment.settled': 'payments:accept',
  'payment.failed': 'payments:accept',
} as const satisfies Record<string, Scope>

export type EventType = keyof typeof EVENT_SCOPES

export const EVENT_TYPES = Object.keys(EVENT_SCOPES) as EventType[]

/** What an event says of a message; its text is read with get-message. */
export type MessageEventData = {
  messageId: string
  threadId: string
  inboxId: string
  from: string[]
  to: string[]
  subject: string
  labels: string[]
}

/** What an event says of a payment. */
type PaymentEventData = {
  paymentId: string
  status: 'settled' | 'failed'
  amountUsdcRaw: string
  network: string
  payerAddress: string
  resourceUrl: string
  txHash: string | null
  failureReason: string | null
}

export type EventData = MessageEventData | PaymentEventData
