import { FairTurns } from '../../shared/process/fairTurns.ts'
import { type Batcher, createBatcher } from '../../sql/batcher.ts'
import { isLockTimeout, type Pool } from '../../sql/db.ts'
import {
  type AuthenticatedMail,
  type StoreOutcome,
  storeParsedMails,
} from '../../sql/mail/storeParsedMails.ts'

const BATCH_MAX = 32
/** Bytes of messages in one batch: writing megabytes would hold up the event loop. */
const BATCH_MAX_BYTES = 512 * 1024
/** A larger message is stored apart. */
const SMALL_BYTES = 64 * 1024
/** Inboxes that store apart at the same time. Each takes a connection. */
const INBOXES_AT_ONCE = 8

type Stores = Pick<Batcher<AuthenticatedMail, StoreOutcome>, 'submit'>

/**
 * Stores messages that were parsed at the same time in one transaction, over inboxes. It waits for no inbox: the
 * messages of one that is held follow apart, as do large messages and bounces.
 */
export function createStoreBatcher(pool: Pool): Stores {
  const apart = createInboxBatcher(pool)
  const together = createBatcher<AuthenticatedMail, StoreOutcome>({
    batchMax: BATCH_MAX,
    // Two transactions of one process would find each other's inboxes held.
    parallel: 1,
    weight: { of: weightOf, max: BATCH_MAX_BYTES },
    run: (items) =>
      storeParsedMails(pool, items, { skipBusy: true }).catch((error: unknown) => {
        if (isLockTimeout(error)) return items.map(() => 'busy' as const)
        throw error
      }),
  })
  return {
    async submit(item) {
      if (weightOf(item) > SMALL_BYTES || item.mail.bounce !== null) return apart.submit(item)
      const outcome = await together.submit(item)
      return outcome === 'busy' ? apart.submit(item) : outcome
    },
  }
}

const weightOf = ({ inbound }: AuthenticatedMail): number => inbound.bytes.length

/**
 * Stores messages of one inbox in one transaction: separate ones would wait for the same lock. Inboxes take turns:
 * large messages of one inbox hold up no other.
 */
function createInboxBatcher(pool: Pool): Stores {
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
      weight: { of: weightOf, max: BATCH_MAX_BYTES },
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
