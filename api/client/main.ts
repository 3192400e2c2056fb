// biome-ignore-all lint/performance/noBarrelFile: this is the entry point of a package
/** The exports of `purser-client`. Each paywall has its own entry point, one for each framework. */

export type { MailDomain } from './domains.ts'
export type { Draft } from './drafts.ts'
export type { EmailRule } from './emailRules.ts'
export * from './errors.ts'
export type { EventsQuery, PurserEvent } from './events.ts'
export type { HeldRequest } from './held.ts'
export type { CallOptions, ClientOptions } from './http.ts'
export type { LogEntry, LogStats } from './logs.ts'
export type { Message, MessageItem } from './messages.ts'
export type {
  Challenge,
  Grant,
  Payment,
  PaymentActivity,
  PaymentItem,
  Receipt,
  RedeemResult,
} from './payments.ts'
export { Purser } from './purser.ts'
export { type Project, PurserPlatform } from './purserPlatform.ts'
export type { Endpoint } from './sellers.ts'
export type { Suppression } from './suppressions.ts'
export type { Thread, ThreadItem } from './threads.ts'
export type { Credential, CredentialItem } from './vault.ts'
export { InvalidReceiptError, type Jwks, verifyReceipt } from './verifyReceipt.ts'
export { InvalidWebhookError, verifyWebhook, type WebhookEvent } from './verifyWebhook.ts'
export type { Delivery, DeliveryItem, Webhook } from './webhooks.ts'
