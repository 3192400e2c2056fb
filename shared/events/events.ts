import type { Scope } from '../scopes.ts'

/** The event types of a project, and the scope that reads each. */
export const EVENT_SCOPES = {
  'message.received': 'mail:read',
  // Beside message.received, for a message with a one-time code. It omits the code.
  'message.code': 'mail:codes',
  'message.held': 'mail:read',
  // The owner rejected it, or nobody decided in time.
  'message.rejected': 'mail:read',
  'message.sent': 'mail:read',
  'message.failed': 'mail:read',
  'message.bounced': 'mail:read',
  // A recipient reported the message as spam.
  'message.complained': 'mail:read',
  'payment.settled': 'payments:accept',
  'payment.failed': 'payments:accept',
  'vault.used': 'vault:use',
} as const satisfies Record<string, Scope>

export type EventType = keyof typeof EVENT_SCOPES

export const EVENT_TYPES = Object.keys(EVENT_SCOPES) as EventType[]

/** The data of a message event. It omits the text; get-message returns it. */
export type MessageEventData = {
  messageId: string
  threadId: string
  inboxId: string
  from: string[]
  to: string[]
  subject: string
  labels: string[]
}

/** The data of a payment event. */
type PaymentEventData = {
  paymentId: string
  status: 'settled' | 'failed'
  amountUsdcRaw: string
  network: string
  payerAddress: string
  resourceUrl: string
  /** `payer`: only the payer named the resource. */
  resourceSource: 'seller' | 'payer'
  paymentIdentifier: string | null
  txHash: string | null
  failureReason: string | null
}

/** The data of a use of a secret. It holds nothing of the answer but its status. */
export type UseEventData = {
  useId: string
  name: string
  state: 'answered' | 'failed' | 'unknown'
  method: string
  host: string
  /** With placeholders, without its query. */
  path: string
  statusCode: number | null
}

export type EventData = MessageEventData | PaymentEventData | UseEventData
