import { type Batcher, createBatcher } from '../../../shared/process/batcher.ts'
import type { Pool } from '../../../sql/db.ts'
import { type Composed, type Kept, keepComposed } from '../../../sql/mail/outbound/composedMails.ts'
import { type AttemptOutcome, recordMailAttempts } from '../../../sql/mail/outbound/mailAttempts.ts'
import { beginAttempts, type OutboundMail } from '../../../sql/mail/outbound/outboundMails.ts'

/** The batched reads and writes of one process's outbound mail. */
export type SendBatchers = {
  begin: Batcher<string, OutboundMail | null>
  record: Batcher<AttemptOutcome, boolean>
  keep: Batcher<Composed, Kept | null>
}

/** One batch gathers while the other runs; a single mail never waits. */
const BATCHING = { batchMax: 32, parallel: 2 }

/** Composed bytes in one statement. */
const BYTES_MAX = 4 * 1024 * 1024

/** The batches of one connection pool. Mails of one project would record their events one after the other. */
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
