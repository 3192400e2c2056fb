import type { Logger } from 'pino'
import type { PageSeals } from '../../shared/approvalLink.ts'
import type { Config } from '../../shared/config/config.ts'
import type { Batcher } from '../../shared/process/batcher.ts'
import type { ReceiptKey } from '../../shared/till/receiptKey.ts'
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
import type { Searches } from '../mail/messages/searches.ts'
import type { Metrics } from '../operations/metrics.ts'
import type { OfferCounts } from '../till/payments/offerCounts.ts'
import type { Reads } from './reads.ts'
import type { Waiters } from './waiters.ts'

/** The services that routes use, one set a process. */
export type Services = {
  config: Config
  pool: Pool
  /** Connections of the gate alone: a key is checked and counted also while `pool` has none left. */
  gatePool: Pool
  /** Finds keys, and counts their requests. */
  keys: Batcher<WantedKey, FoundKey | null>
  /** Large contents of mail. */
  blobs: Blobs
  searches: Searches
  /** Runs reads of lists, on a replica if there is one. */
  reads: Reads
  /** Reads messages. */
  messages: Batcher<WantedMessage, SingleMessage | null>
  /** Reads credentials, each with its audit entry. */
  credentials: Batcher<CredentialRead, SealedRead>
  log: Logger
  sendBatcher: Batcher<SendIntent, SendOutcome>
  /** Finds the refused recipients of a mail, and whether its project may store more. */
  policies: Batcher<WantedRecipients, SendPolicy>
  /** Reads sellers and their resources. */
  sales: Batcher<WantedSale, Sale>
  /** Makes claims; true for a new one. */
  claims: Batcher<NewClaim, boolean>
  /** Reads payments by identifier. */
  payments: Batcher<string, Payment | null>
  /** Takes grants; true for the first caller. */
  grants: Batcher<WantedGrant, boolean>
  /** Counts challenges and refusals. */
  offerCounts: OfferCounts
  waiters: Waiters
  events: EventFeed
  exports: Exports
  metrics: Metrics
  /** The master keys that wrap vault and webhook secrets. */
  keyring: KeyringSource
  /** Prove that the pages of a held mail were shown. */
  pageSeals: PageSeals
  /** Seals what MCP clients carry between calls: 32 bytes, the same in every process. */
  stateKey: Uint8Array
  /** The key that signs offers; null: no worker has published it. */
  offerKey: () => Promise<ReceiptKey | null>
}
