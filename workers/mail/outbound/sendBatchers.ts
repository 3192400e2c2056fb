import { type Batcher, createBatcher } from '../../../shared/process/batcher.ts'
import type { Pool } from '../../../sql/db.ts'
import { type Composed, type Kept, keepComposed } from '../../../sql/mail/outbound/composedMails.ts'
import { type AttemptOutcome, recordMailAttempts } from '../../../sql/mail/outbound/mailAttempts.ts'
import { beginAttempts, type OutboundMail } from '../../../sql/mail/outbound/outboundMails.ts'

/**
 * Holds the three batchers with which a process sends mail. The three batchers begin delivery attempts, record
 * outcomes, and store the bytes of composed mails.
 */
export type SendBatchers = {
  begin: Batcher<string, OutboundMail | null>
  record: Batcher<AttemptOutcome, boolean>
  keep: Batcher<Composed, Kept | null>
}

/**
 * Sets how outbound mails are batched. While one batch of mails runs, the next batch collects mails. A single mail
 * never waits for a batch to fill.
 */
const BATCHING = { batchMax: 32, parallel: 2 }

/** Limits the bytes of composed mails that one SQL statement stores. */
const BYTES_MAX = 4 * 1024 * 1024

/**
 * Creates the batchers for one database connection pool. Without them, the mails of one project would record their
 * events one after the other, each in a separate transaction.
 */
export const createSendBatchers = (pool: Pool): SendBatchers => ({
  begin: createBatcher({ ...BATCHING, run: (rows: string[]) => beginAttempts(pool, rows) }),
  record: createBatcher({
    ...BATCHING,
    run: (outcomes: AttemptOutcome[]) => recordMailAttempts(pool, outcomes),
  }),
  keep: createBatcher({
    ...BATCHING,
    run: (composed: Composed[]) => keepComposed(pool, composed),
    weight: { of: ({ bytes }: Composed) => bytes.length, max: BYTES_MAX },
  }),
})
