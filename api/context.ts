import type { Logger } from 'pino'
import type { Config } from '../shared/config.ts'
import type { Actor } from '../sql/audit.ts'
import type { Batcher } from '../sql/batcher.ts'
import type { Pool } from '../sql/db.ts'
import type { KeyringSource } from '../sql/keyring.ts'
import type { Identity } from '../sql/keys.ts'
import type { Refusal, WantedRecipients } from '../sql/mail/recipientPolicy.ts'
import type { SendIntent, SendOutcome } from '../sql/mail/sendMessages.ts'
import type { NewClaim, WantedGrant } from '../sql/till/claims.ts'
import type { Payment } from '../sql/till/payments.ts'
import type { EventFeed } from './events/eventFeed.ts'
import type { Metrics } from './metrics.ts'
import type { Waiters } from './waiters.ts'

/** What the routes work with; made once a process. */
export type Services = {
  config: Config
  pool: Pool
  log: Logger
  sends: Batcher<SendIntent, SendOutcome>
  /** Answers which recipients mail may not go to. */
  recipients: Batcher<WantedRecipients, Refusal[]>
  /** Answers whether the claim was made. */
  claims: Batcher<NewClaim, boolean>
  /** Answers the payment of an identifier, or null. */
  payments: Batcher<string, Payment | null>
  /** Answers whether the caller has the grant. */
  grants: Batcher<WantedGrant, boolean>
  waiters: Waiters
  events: EventFeed
  metrics: Metrics
  /** The master keys, which vault and webhook secrets are under. */
  keyring: KeyringSource
}

const identities = new WeakMap<Request, Identity>()
const requestIds = new WeakMap<Request, string>()
const clientAddresses = new WeakMap<Request, string>()

/** Remembers the IP address that a request came from, proxies set aside. */
export function setClientAddress(request: Request, address: string): void {
  clientAddresses.set(request, address)
}

/** The IP address that a request came from. */
export const clientAddressOf = (request: Request): string => clientAddresses.get(request) ?? ''

/** Remembers the identifier that a request is logged by. */
export function setRequestId(request: Request, requestId: string): void {
  requestIds.set(request, requestId)
}

/** The identifier that a request is logged by. */
export const requestIdOf = (request: Request): string => requestIds.get(request) ?? 'unknown'

/** Remembers who sent a request; the gate calls this once it has checked the key and its scope. */
export function setIdentity(request: Request, identity: Identity): void {
  identities.set(request, identity)
}

/** Who sent this request. */
export function identityOf(request: Request): Identity {
  const identity = identities.get(request)
  if (identity === undefined) throw new Error('this route asks for no key, yet for an identity')
  return identity
}

/** Who asks, as operations that are checked and recorded by themselves want to know it. */
export type Caller = Actor & { scopes: readonly string[] }

/** The caller of a request; only a route that asks for a project scope may ask. */
export function callerOf(request: Request): Caller {
  const { projectId } = projectOf(request)
  const { keyPrefix, scopes } = identityOf(request)
  return { projectId, keyPrefix, scopes, requestId: requestIdOf(request) }
}

/** The project this request acts as, and its inbox; only a route that asks for a project scope may call it. */
export function projectOf(request: Request): { projectId: string; inboxAddress: string } {
  const { projectId, inboxAddress } = identityOf(request)
  if (projectId === null || inboxAddress === null) {
    throw new Error('this route admits platform keys, yet asks for a project')
  }
  return { projectId, inboxAddress }
}
