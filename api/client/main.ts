// biome-ignore-all lint/performance/noBarrelFile: this is the entry point of a package
/**
 * Exports everything of `purser-client` except the paywalls, because each web framework has a separate entry point of
 * the package with its paywall.
 */

export type { CalendarEvent } from './calls/calendar.ts'
export type { MailDomain } from './calls/domains.ts'
export type { Draft } from './calls/drafts.ts'
export type { EmailRule } from './calls/emailRules.ts'
export type { HealthReport } from './calls/health.ts'
export type { HeldRequest } from './calls/held.ts'
export type { LogEntry, LogStats } from './calls/logs.ts'
export type { Mandate } from './calls/mandates.ts'
export type { Message, MessageItem } from './calls/messages.ts'
export type {
  Challenge,
  Grant,
  Payment,
  PaymentActivity,
  PaymentItem,
  Receipt,
  RedeemResult,
} from './calls/payments.ts'
export type { Purchase } from './calls/purse.ts'
export type { Endpoint } from './calls/sellers.ts'
export type { Suppression } from './calls/suppressions.ts'
export type { Thread, ThreadItem } from './calls/threads.ts'
export type { Credential, CredentialItem } from './calls/vault.ts'
export type { Delivery, DeliveryItem, Webhook } from './calls/webhooks.ts'
export * from './errors.ts'
export type { EventsQuery, PurserEvent } from './events.ts'
export type { CallOptions, ClientOptions } from './http.ts'
export { OpenPurchaseError, type PaidFetch, PurchaseError } from './paidFetch.ts'
export { Purser } from './purser.ts'
export { type Project, PurserPlatform } from './purserPlatform.ts'
export { InvalidReceiptError, type Jwks, verifyReceipt } from './verifyReceipt.ts'
export { InvalidWebhookError, verifyWebhook, type WebhookEvent } from './verifyWebhook.ts'
