import { type Costs, mayShare } from '../../../shared/fair/costs.ts'
import { CostTurns } from '../../../shared/fair/costTurns.ts'
import { type Batcher, createBatcher } from '../../../shared/process/batcher.ts'
import { isLockTimeout, type Pool } from '../../../sql/db.ts'
import {
  type AuthenticatedMail,
  type StoreOutcome,
  storeParsedMails,
} from '../../../sql/mail/inbound/storeParsedMails.ts'
import { LIGHT_BYTES } from './parseTurns.ts'
import { sharersOf } from './sharers.ts'

const BATCH_MAX = 32
/**
 * Limits the message bytes of a batch that is stored in one transaction. While the batch is being stored, all later
 * mails must wait, even if their inboxes and networks have caused less load.
 */
const BATCH_MAX_BYTES = 128 * 1024
/**
 * Sets the minimum number of bytes that is charged for storing a mail. A smaller mail is charged as if it had this
 * number of bytes.
 */
const BASE_BYTES = 4 * 1024
/**
 * Sets the maximum size in bytes of a message that the service may store in one transaction with messages of other
 * inboxes.
 */
const SMALL_BYTES = 64 * 1024
/**
 * Limits how many inboxes store their messages in separate transactions at the same time, because each inbox with a
 * separate transaction takes a database connection.
 */
const INBOXES_AT_ONCE = 8

type Stores = Pick<Batcher<AuthenticatedMail, StoreOutcome>, 'submit'>

/**
 * Stores messages of several inboxes, which were parsed at the same time, in one transaction. This transaction does not
 * wait for a locked inbox. The messages of a locked inbox, large messages and bounces are stored in separate
 * transactions. Light messages never wait for a transaction of heavy messages, because 60 KB of different words take
 * the database 100 ms.
 */
export function createStoreBatcher(pool: Pool, costs: Costs): Stores {
  const apart = createInboxBatcher(pool, costs)
  const [light, heavy] = [createLane(pool, costs), createLane(pool, costs)]
  return {
    async submit(item) {
      const weight = weightOf(item)
      if (weight > SMALL_BYTES || item.mail.bounce !== null) return apart.submit(item)
      const outcome = await (weight <= LIGHT_BYTES ? light : heavy).submit(item)
      return outcome === 'busy' ? apart.submit(item) : outcome
    },
  }
}

/**
 * Stores messages of several inboxes. The messages of the inboxes and networks that have recently caused the least load
 * are stored first.
 */
const createLane = (pool: Pool, costs: Costs): Stores =>
  createBatcher<AuthenticatedMail, StoreOutcome>({
    batchMax: BATCH_MAX,
    // Only one transaction that stores messages of several inboxes runs at a time. If several such transactions ran at
    // once, each transaction would find inboxes that another transaction has locked.
    parallel: 1,
    weight: { of: weightOf, max: BATCH_MAX_BYTES },
    rank: {
      asOfNow() {
        const costOf = costs.asOfNow()
        return ({ inbound }) => costOf(sharersOf(inbound))
      },
      mayShare,
    },
    run: (items) =>
      charged(costs, items, () =>
        storeParsedMails(pool, items, { skipBusy: true }).catch((error: unknown) => {
          if (isLockTimeout(error)) return items.map(() => 'busy' as const)
          throw error
        }),
      ),
  })

/**
 * Divides the storage time of a batch between the mails of the batch, in proportion to their sizes. Charges each part
 * to the inbox and the sending network of the mail.
 */
async function charged<Result>(
  costs: Costs,
  items: readonly AuthenticatedMail[],
  store: () => Promise<Result>,
): Promise<Result> {
  const startMs = performance.now()
  try {
    return await store()
  } finally {
    const weights = items.map((item) => BASE_BYTES + weightOf(item))
    const msPerByte = (performance.now() - startMs) / weights.reduce((sum, one) => sum + one, 0)
    for (const [n, { inbound }] of items.entries()) {
      costs.charge(sharersOf(inbound), weights[n]! * msPerByte)
    }
  }
}

const weightOf = ({ inbound }: AuthenticatedMail): number => inbound.bytes.length

/**
 * Stores messages of one inbox in one transaction, because separate transactions would wait for the same lock. The
 * inbox that has recently caused the least load comes first. Large messages of one inbox delay another inbox by at most
 * one transaction.
 */
function createInboxBatcher(pool: Pool, costs: Costs): Stores {
  const turns = new CostTurns(costs, INBOXES_AT_ONCE)
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
        const leave = await turns.enter([projectId])
        return await charged(costs, items, () => storeParsedMails(pool, items)).finally(leave)
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
