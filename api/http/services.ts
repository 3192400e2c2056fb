import type { Logger } from 'pino'
import type { PageSeals } from '../../shared/approvalLink.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Batcher } from '../../shared/process/batcher.ts'
import type { ReceiptKey } from '../../shared/till/receiptKey.ts'
import type { Macs } from '../../shared/vault/macs.ts'
import type { FoundKey, WantedKey } from '../../sql/account/keys/keys.ts'
import type { Blobs } from '../../sql/blobs/blobs.ts'
import type { Pool } from '../../sql/db.ts'
import type { KeyringSource } from '../../sql/keyring/keyring.ts'
import type { SingleMessage, WantedMessage } from '../../sql/mail/messages/messages.ts'
import type { SendPolicy, WantedRecipients } from '../../sql/mail/outbound/recipientPolicy.ts'
import type { SendIntent, SendOutcome } from '../../sql/mail/outbound/sendIntents.ts'
import type { Sale, WantedSale } from '../../sql/till/endpoints/seller.ts'
import type { Payment } from '../../sql/till/payments/payments.ts'
import type { NewClaim, WantedGrant } from '../../sql/till/settle/claims.ts'
import type { CredentialRead, SealedRead } from '../../sql/vault/credentialReads.ts'
import type { Exports } from '../account/exports.ts'
import type { EventFeed } from '../events/eventFeed.ts'
import type { RecentReviews } from '../mail/approval/recentReviews.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { OfferCounts } from '../till/payments/offerCounts.ts'
import type { HeldAnswers } from './limits/heldAnswers.ts'
import type { LoopTime } from './limits/loopTime.ts'
import type { Searches } from './limits/searches.ts'
import type { StrangerReads } from './limits/strangerReads.ts'
import type { Reads } from './reads.ts'
import type { Waiters } from './waiters.ts'

/** Holds the services that the routes of the API use. Each API process has one set of these services. */
export type Services = {
  config: Config
  pool: Pool
  /**
   * Holds the database connections that only the authentication of requests uses. With them, the gate (the checks
   * before every handler) can check and count an API key even while `pool` has no free connection.
   */
  gatePool: Pool
  /** Finds API keys in the database, and counts their requests. */
  keys: Batcher<WantedKey, FoundKey | null>
  /** Stores and reads large contents of mail. */
  blobs: Blobs
  /** Limits the memory of large contents (such as mails) until the clients have read them. */
  answers: HeldAnswers
  /** Caches the review pages of the held mails (mails that wait for approval) that people have read most recently. */
  reviews: RecentReviews
  /** Shares the time of the event loop between the costly reads of projects. */
  loopTime: LoopTime
  searches: Searches
  /** Runs the database reads of callers without a key. */
  strangerReads: StrangerReads
  /** Runs reads of lists on a replica if the service has a replica. */
  reads: Reads
  /** Reads single messages. */
  messages: Batcher<WantedMessage, SingleMessage | null>
  /** Reads credentials, and writes the audit entry of each read. */
  credentials: Batcher<CredentialRead, SealedRead>
  log: Logger
  sendBatcher: Batcher<SendIntent, SendOutcome>
  /**
   * Finds the recipients to whom the service refuses to send a mail, and tells whether the project has enough storage
   * left for it.
   */
  policies: Batcher<WantedRecipients, SendPolicy>
  /** Reads sellers and the resources that they sell. */
  sales: Batcher<WantedSale, Sale>
  /**
   * Stores a signed payment authorization, which the service then settles. Returns `true` if the authorization is new,
   * and `false` if the service has already stored it.
   */
  claims: Batcher<NewClaim, boolean>
  /** Reads payments by identifier. */
  payments: Batcher<string, Payment | null>
  /**
   * Grants the first caller the right to serve a paid resource. Returns `true` for the first caller, and `false` for
   * later callers with the same payment.
   */
  grants: Batcher<WantedGrant, boolean>
  /** Counts the payment challenges and the refused payments of each endpoint and day. */
  offerCounts: OfferCounts
  waiters: Waiters
  events: EventFeed
  exports: Exports
  metrics: Metrics
  /** Holds the master keys that encrypt the vault and webhook secrets. */
  keyring: KeyringSource
  /**
   * Makes the seals (cryptographic proofs) which show that the owner has seen the pages of a mail that waits for
   * approval.
   */
  pageSeals: PageSeals
  /**
   * Makes and checks the proof that a person with an email address has signed in with a browser. The proof is a MAC of
   * the email address.
   */
  browserProofs: Macs
  /**
   * Holds the keys that authenticate the state that MCP clients carry between calls, one for each master key. The first
   * key authenticates new states. Each key has 32 bytes, and all processes have the same keys.
   */
  stateKeys: readonly Uint8Array[]
  /** Returns the key that signs x402 offers. Returns `null` if no worker has published a key for signing offers. */
  offerKey: () => Promise<ReceiptKey | null>
}
