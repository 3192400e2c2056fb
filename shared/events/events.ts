import type { Scope } from '../scopes.ts'

/** The event types of a project, and the scope that reads each. */
export const EVENT_SCOPES = {
  'message.received': 'mail:read',
  // Beside message.received, for a message with a one-time code. It omits the code.
  'message.code': 'mail:codes',
  // Beside message.received, for a message with an invitation, an update, a cancellation or an answer.
  'message.invite': 'mail:read',
  // The text of an attachment can be read, or never will be.
  'attachment.read': 'mail:read',
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
  // The chain shows a refund.
  'payment.refunded': 'payments:accept',
  'vault.used': 'vault:use',
  // The chain shows the transfer.
  'purse.paid': 'purse:read',
  // A seller of this service has paid a payment back.
  'purse.refunded': 'purse:read',
  // Nothing was signed.
  'purse.refused': 'purse:read',
  // A payment waits for the owner.
  'purse.asked': 'purse:read',
  // A mandate has used 80 or 95 % of a bound.
  'purse.warned': 'purse:read',
  'purse.low': 'purse:read',
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
  /** Of attachment.read alone. */
  attachment?: AttachmentRead
  /** Of message.invite alone. */
  invites?: InviteNotice[]
}

/**
 * What an invite does to the calendar. `outdated`: the calendar knows a later state. `proposal`: its sender is not proven
 * to be who may say so, and nothing changes.
 */
export const INVITE_EFFECTS = [
  'new',
  'updated',
  'cancelled',
  'answered',
  'same',
  'outdated',
  'proposal',
] as const
export type InviteEffect = (typeof INVITE_EFFECTS)[number]

/** An invite in the event `message.invite`. */
export type InviteNotice = {
  uid: string
  recurrenceId: string | null
  method: string
  effect: InviteEffect
}

/** What became of an attachment's text, in the event `attachment.read`. */
export type AttachmentRead = {
  attachmentId: string
  state: 'ready' | 'none' | 'failed'
  chars: number
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

/** The data of an event of a purchase. The seller's own words are left out. */
export type PurchaseEventData = {
  purchaseId: string
  host: string
  path: string
  /** Null: the seller named no price. */
  amountUsdcRaw: string | null
  payTo: string | null
  network: string | null
  txHash: string | null
  /** Why it was refused, or why the owner is asked; else null. */
  reason: string | null
}

/** The data of a warning: a bound of a mandate is nearly used up. */
type MandateEventData = {
  mandateId: string
  bound: 'hour' | 'day' | 'month' | 'total'
  percent: 80 | 95
  usedUsdcRaw: string
  limitUsdcRaw: string
}

/** The data of a refund. `refundOf`: the payment. */
export type RefundEventData = {
  refundId: string
  refundOf: string
  amountUsdcRaw: string
  payTo: string
  network: string
  txHash: string
}

/** The data of a refund, for the buyer. */
export type RefundedPurchaseEventData = {
  purchaseId: string
  refundId: string
  amountUsdcRaw: string
  network: string
  txHash: string
}

/** The data of a low balance. */
type PurseEventData = { address: string; balanceUsdcRaw: string; lowUsdcRaw: string }

export type EventData =
  | MessageEventData
  | PaymentEventData
  | UseEventData
  | PurchaseEventData
  | MandateEventData
  | PurseEventData
  | RefundEventData
  | RefundedPurchaseEventData
