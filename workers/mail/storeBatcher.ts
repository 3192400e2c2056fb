import { FairTurns } from '../../shared/process/fairTurns.ts'
import { type Batcher, createBatcher } from '../../sql/batcher.ts'
import type { Pool } from '../../sql/db.ts'
import {
  type AuthenticatedMail,
  type StoreOutcome,
  storeParsedMails,
} from '../../sql/mail/storeParsedMails.ts'

const BATCH_MAX = 32
/** Bytes of messages in one batch: writing megabytes would hold up the event loop. */
const BATCH_MAX_BYTES = 512 * 1024
/** Inboxes that store at the same time. Each takes a connection. */
const INBOXES_AT_ONCE = 8

/**
 * Stores messages of one inbox in one transaction when they were parsed at the same time: they lock the same inbox
 * anyway, and separate transactions would each wait for the disk too. Inboxes take turns: large messages of one inbox
 * hold up no other.
 */
export function createStoreBatcher(
  pool: Pool,
): Pick<Batcher<AuthenticatedMail, StoreOutcome>, 'submit'> {
  const turns = new FairTurns({ total: INBOXES_AT_ONCE, perOwner: 1 })
  const inboxes = new Map<
    string,
    { batcher: Batcher<AuthenticatedMail, StoreOutcome>; open: number }
  >()
  const newInbox = (projectId: string) => ({
    open: 0,
    batcher: createBatcher({
      batchMax: BATCH_MAX,
      parallel: 1,
      weight: {
        of: ({ inbound }: AuthenticatedMail) => inbound.bytes.length,
        max: BATCH_MAX_BYTES,
      },
      async run(items: AuthenticatedMail[]) {
        const leave = await turns.enter(projectId)
        return await storeParsedMails(pool, items).finally(leave)
      },
    }),
  })
  return {
    async submit(item) {
      const { projectId } = item.inbound
      const inbox = inboxes.get(projectId) ?? newInbox(projectId)
      inboxes.set(projectId, inbox)
      inbox.open++
      try {
        return await inbox.batcher.submit(item)
      } finally {
        if (--inbox.open === 0) inboxes.delete(projectId)
      }
    },
  }
}
