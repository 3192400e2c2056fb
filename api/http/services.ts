import type { Logger } from 'pino'
import type { Config } from '../../shared/config/config.ts'
import type { Batcher } from '../../sql/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import type { Refusal, WantedRecipients } from '../../sql/mail/recipientPolicy.ts'
import type { SendIntent, SendOutcome } from '../../sql/mail/sendMessages.ts'
import type { NewClaim, WantedGrant } from '../../sql/till/claims.ts'
import type { Payment } from '../../sql/till/payments.ts'
import type { EventFeed } from '../events/eventFeed.ts'
import type { Metrics } from '../operations/metrics.ts'
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
