import type { Scope } from '../scopes.ts'

/** Lists the event types of a project, each with the scope for reading events of the type. */
export const EVENT_SCOPES = {
  'message.received': 'mail:read',
  // For a message with a one-time code, the event `message.code` comes in addition to `message.received`. The event
  // `message.code` does not contain the one-time code itself.
  'message.code': 'mail:codes',
  // For a message with a calendar invite, the event `message.invite` comes in addition to `message.received`. The
  // message contains an invitation, an update, a cancellation or a reply to an invitation.
  'message.invite': 'mail:read',
  // The event `attachment.read` says that the text of an attachment is now available, or will never be available.
  'attachment.read': 'mail:read',
  'message.held': 'mail:read',
  // The event `message.rejected` says that the owner rejected an outgoing message, or that the time for the owner's
  // decision ended.
  'message.rejected': 'mail:read',
  'message.sent': 'mail:read',
  'message.failed': 'mail:read',
  'message.bounced': 'mail:read',
  // The event `message.complained` says that a recipient reported the message as spam.
  'message.complained': 'mail:read',
  'payment.settled': 'payments:accept',
  'payment.failed': 'payments:accept',
  // The event `payment.refunded` says that the chain shows the refund of a payment.
  'payment.refunded': 'payments:accept',
  'vault.used': 'vault:use',
  // The event `purse.paid` says that the chain shows the transfer of a payment from the purse.
  'purse.paid': 'purse:read',
  // The event `purse.refunded` says that a seller of this service has refunded a payment of the purse.
  'purse.refunded': 'purse:read',
  // The event `purse.refused` says that the purse (a project's spending wallet) did not sign a payment.
  'purse.refused': 'purse:read',
  // The event `purse.asked` says that a payment of the purse (a project's spending wallet) waits for the owner's
  // decision.
  'purse.asked': 'purse:read',
  // The event `purse.warned` says that a spending mandate has used 80 or 95 % of one of its limits.
  'purse.warned': 'purse:read',
  'purse.low': 'purse:read',
} as const satisfies Record<string, Scope>

export type EventType = keyof typeof EVENT_SCOPES

export const EVENT_TYPES = Object.keys(EVENT_SCOPES) as EventType[]

/**
 * Describes the data of a message event. These data omit the text of the message, which the API operation get-message
 * returns.
 */
export type MessageEventData = {
  messageId: string
  threadId: string
  inboxId: string
  from: string[]
  to: string[]
  subject: string
  labels: string[]
  /**
   * Tells whether the service has read an attachment's text. Only the event `attachment.read` has the field
   * `attachment`.
   */
  attachment?: AttachmentRead
  /** Lists the calendar invites in the message. Only the event `message.invite` has the field `invites`. */
  invites?: InviteNotice[]
}

/**
 * Lists the effects that an invite can have on the calendar. The effect `outdated` means that the calendar already has
 * a newer revision of the event. The effect `proposal` means that the sender is not proven to be the organizer, so the
 * calendar does not change.
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

/** Describes a calendar invitation in the event `message.invite`. */
export type InviteNotice = {
  uid: string
  recurrenceId: string | null
  method: string
  effect: InviteEffect
}

/**
 * Describes the data of the event `attachment.read`. The field `state` tells whether the service has read the
 * attachment's text.
 */
export type AttachmentRead = {
  attachmentId: string
  state: 'ready' | 'none' | 'failed'
  chars: number
}

/** Describes the data of a payment event. */
type PaymentEventData = {
  paymentId: string
  status: 'settled' | 'failed'
  amountUsdcRaw: string
  network: string
  payerAddress: string
  resourceUrl: string
  /**
   * Tells whether the seller named the paid resource. The value `payer` means that only the payer named the paid
   * resource.
   */
  resourceSource: 'seller' | 'payer'
  paymentIdentifier: string | null
  txHash: string | null
  failureReason: string | null
}

/**
 * Describes the data of the event about a request with a secret of the vault. Of the HTTP response, these data contain
 * only the status.
 */
export type UseEventData = {
  useId: string
  name: string
  state: 'answered' | 'failed' | 'unknown'
  method: string
  host: string
  /**
   * Holds the URL path of the request that contained the secret. The path shows placeholders in place of the secret,
   * and has no query.
   */
  path: string
  statusCode: number | null
}

/** Describes the data of a purchase event. These data omit the texts that the seller wrote. */
export type PurchaseEventData = {
  purchaseId: string
  host: string
  path: string
  /** Holds the price in atomic USDC. Null means that the seller named no price. */
  amountUsdcRaw: string | null
  payTo: string | null
  network: string | null
  txHash: string | null
  /**
   * Tells why the purse refused the payment, or why the service asks the owner for a decision. In other purchase
   * events, `reason` is null.
   */
  reason: string | null
}

/** Describes the data of the event `purse.warned`: a spending mandate has nearly used up one of its limits. */
type MandateEventData = {
  mandateId: string
  bound: 'hour' | 'day' | 'month' | 'total'
  percent: 80 | 95
  usedUsdcRaw: string
  limitUsdcRaw: string
}

/** Describes the data of a refund event. The field `refundOf` is the id of the refunded payment. */
export type RefundEventData = {
  refundId: string
  refundOf: string
  amountUsdcRaw: string
  payTo: string
  network: string
  txHash: string
}

/** Describes the data of the event `purse.refunded`, which the buyer's project gets. */
export type RefundedPurchaseEventData = {
  purchaseId: string
  refundId: string
  amountUsdcRaw: string
  network: string
  txHash: string
}

/**
 * Describes the data of the event `purse.low`, which reports a low balance of a purse (a project's spending wallet).
 */
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
