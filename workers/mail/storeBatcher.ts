import { type Batcher, createBatcher } from '../../sql/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import {
  type AuthenticatedMail,
  type StoreOutcome,
  storeParsedMails,
} from '../../sql/mail/storeParsedMails.ts'

/** With two in parallel, one batch gathers while the other commits. */
const BATCHING = { batchMax: 32, parallel: 2 }

/**
 * Stores messages of one inbox in one transaction when they were parsed at the same time. They lock the same inbox
 * anyway, and separate transactions would each wait for the disk too.
 */
export const createStoreBatcher = (pool: Pool): Batcher<AuthenticatedMail, StoreOutcome> =>
  createBatcher({ ...BATCHING, run: (items: AuthenticatedMail[]) => storeByInbox(pool, items) })

async function storeByInbox(pool: Pool, items: AuthenticatedMail[]): Promise<StoreOutcome[]> {
  const inboxes = Map.groupBy(items, ({ inbound }) => inbound.projectId)
  const outcomes = new Map<AuthenticatedMail, StoreOutcome>()
  await Promise.all(
    [...inboxes.values()].map(async (own) => {
      for (const [n, outcome] of (await storeParsedMails(pool, own)).entries()) {
        outcomes.set(own[n]!, outcome)
      }
    }),
  )
  return items.map((item) => outcomes.get(item)!)
}
