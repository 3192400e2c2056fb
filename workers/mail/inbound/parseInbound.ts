import { Costs } from '../../../shared/fair/costs.ts'
import { FairTurns } from '../../../shared/fair/fairTurns.ts'
import { Shares } from '../../../shared/fair/shares.ts'
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import type { Blobs } from '../../../sql/blobs/blobs.ts'
import type { Pool } from '../../../sql/db.ts'
import { readRules, readRulesOf } from '../../../sql/mail/inbound/emailRules.ts'
import {
  BATCHED_BYTES,
  findInboundMail,
  findInboundMails,
  type InboundMail,
  type LargeInboundMail,
} from '../../../sql/mail/inbound/inboundMails.ts'
import { addJob, type NewJob } from '../../../sql/queue/jobs.ts'
import { patiently } from '../../queue/patiently.ts'
import type { PoolContext, Task } from '../../queue/task.ts'
import type { LookUp } from '../lookUp.ts'
import { DnsTurns } from './dnsTurns.ts'
import { LIGHT_BYTES } from './parseTurns.ts'
import { createReceiveMail, type ParseOptions, type ReceiveMail } from './receiveMail.ts'
import { sharersOf } from './sharers.ts'

/**
 * If workers have fetched a parse job this many times and the job has never ended, its message is parsed in a child
 * process. The message may have killed the worker process each time, or another message in the same process may have
 * done so.
 */
const ATTEMPTS_BEFORE_ISOLATION = 3
/**
 * If workers have fetched a batch job this many times and the job has never ended, each of its messages is parsed in a
 * child process. A message that kills its child process then does not affect the other messages of the batch.
 */
const BATCH_ATTEMPTS_BEFORE_ISOLATION = 1

/**
 * If the database has refused a message this many times, the service assumes that the database will always refuse it.
 * Therefore the service stores the raw message without parsing.
 */
const ATTEMPTS_TO_STORE = 5

/**
 * Sets the maximum size in bytes of a small message. Every job slot (place for a running job) of the worker pool may
 * hold a message of this size in memory at the same time.
 */
const SMALL_BYTES = 256 * 1024
/**
 * Limits how many large messages are in memory at once, because the parser takes ten times the size of a message in
 * memory.
 */
const LARGE_AT_ONCE = 4
/**
 * Sets the size in bytes above which only one message is in memory at a time. Parsing a message of 35 MB took 660 MB in
 * the parser and 600 MB in this process, and a container of the mail pool has 3 GB.
 */
const HUGE_BYTES = 4 * 1024 * 1024
/** Sets the number of message bytes in a batch of mails that count as one job slot of the worker pool. */
const PART_BYTES = 64 * 1024
/**
 * Limits the milliseconds for which a batch of mails waits for DNS answers. The wait for DNS is short, because a batch
 * occupies a job slot of the pool.
 */
const PATIENCE_MS = 1_000

type Tasks = { parse_inbound: Task<'parse_inbound'>; parse_batch: Task<'parse_batch'> }

type Parts = {
  pool: Pool
  blobs: Blobs
  store: ReceiveMail
  shares: Shares
  costs: Costs
  dnsTurns: DnsTurns
}

/**
 * Parses inbound mails and stores them in their inboxes. Inboxes and sending networks share the job slots (places for
 * running jobs) of the worker pool. If the inbox or the sending network of a mail has no free job slot, the service
 * tries the mail again later. The retry delay of the mail grows with the cost that its inbox and its network have
 * caused.
 */
export function createParseInbound(context: PoolContext, options: ParseOptions): Tasks {
  const { costs = new Costs() } = options
  const dnsTurns = new DnsTurns(options.slots)
  const parts = {
    pool: context.pool,
    blobs: options.blobs,
    shares: new Shares(options.slots),
    store: createReceiveMail(context, { ...options, costs }, dnsTurns),
    costs,
    dnsTurns,
  }
  return { parse_inbound: createParseOne(parts), parse_batch: createParseBatch(context, parts) }
}

function createParseOne({ pool, blobs, store, shares, costs }: Parts): Task<'parse_inbound'> {
  const large = new FairTurns({ total: LARGE_AT_ONCE, perSharer: LARGE_AT_ONCE / 2 })
  const huge = new FairTurns({ total: 1, perSharer: 1 })
  return async ({ inboundId, unsureSince }, { attempt }) => {
    const found = await findInboundMail(pool, blobs, inboundId, LIGHT_BYTES)
    if (found === null) return
    const sharers = sharersOf(found)
    const place = shares.enter(sharers)
    if (!place.granted) {
      const priority = costs.priorityOf(sharers)
      const inMs = laterBy(priority, place.returnInMs)
      return await queue(pool, jobOf([inboundId], { inMs, priority, unsureSince }))
    }
    const size = sizeOf(found)
    const isLarge = size > SMALL_BYTES
    const receive = async (patienceMs: number, answers?: LookUp) => {
      const turns = size > HUGE_BYTES ? huge : large
      const leave = isLarge ? await turns.enter(found.projectId) : () => {}
      try {
        return await store.receive(found, {
          rules: await readRules(pool, found.projectId, ['RECEIVE']),
          isolated: attempt > ATTEMPTS_BEFORE_ISOLATION,
          storeAnyway: attempt > ATTEMPTS_TO_STORE,
          patienceMs,
          answers,
          unsureSince: unsureSince === undefined ? null : new Date(unsureSince),
        })
      } finally {
        leave()
      }
    }
    try {
      // All inboxes share the few memory places for large mails. A sender may choose name servers that delay their
      // answers. Therefore a large mail gives its memory place back before it waits for these name servers.
      const slow = await receive(isLarge ? PATIENCE_MS : Number.POSITIVE_INFINITY)
      if (slow !== null) await receive(Number.POSITIVE_INFINITY, await store.answersOf(slow))
    } finally {
      place.leave()
    }
  }
}

/**
 * Parses a batch of small mails. Each mail of a batch proceeds independently, so that a mail that waits for a name
 * server does not delay the other mails. If parsing a mail of a batch fails, this mail gets a separate job.
 */
function createParseBatch(
  { log }: PoolContext,
  { pool, store, shares, costs, dnsTurns }: Parts,
): Task<'parse_batch'> {
  return async ({ inboundIds }, { attempt }) => {
    const found = await findInboundMails(pool, inboundIds, LIGHT_BYTES)
    const projects = [...new Set(found.map(({ projectId }) => projectId))]
    const rules = await readRulesOf(pool, projects, ['RECEIVE'])
    const isolated = attempt > BATCH_ATTEMPTS_BEFORE_ISOLATION
    const take = async (mail: InboundMail | LargeInboundMail, leave: () => void) => {
      try {
        const own = rules.get(mail.projectId) ?? []
        const slow = await store.receive(mail, {
          ...{ rules: own, isolated, storeAnyway: false },
          ...{ patienceMs: PATIENCE_MS, unsureSince: null },
        })
        const priority = dnsTurns.priorityOf(mail)
        if (slow !== null) await queue(pool, jobOf([mail.id], { priority }))
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error
        log.warn({ inboundId: mail.id, err: error }, 'a mail leaves its batch')
        await queue(pool, jobOf([mail.id]))
      } finally {
        leave()
      }
    }
    const refused = new Map<string, { ids: string[]; priority: number }>()
    const taken: Promise<unknown>[] = []
    for (const mail of found) {
      const sharers = sharersOf(mail)
      const crowded = shares.crowded(sharers)
      if (sizeOf(mail) > BATCHED_BYTES) taken.push(queue(pool, jobOf([mail.id])))
      else if (crowded !== null) {
        const { ids, priority } = refused.get(crowded) ?? { ids: [], priority: 0 }
        const lower = Math.max(priority, costs.priorityOf(sharers))
        refused.set(crowded, { ids: [...ids, mail.id], priority: lower })
      } else {
        const place = shares.enter(sharers, partOf(mail, inboundIds.length))
        taken.push(take(mail, place.granted ? place.leave : () => {}))
      }
    }
    for (const [sharer, { ids, priority }] of refused) {
      const inMs = laterBy(priority, shares.returnInMs(sharer, ids.length))
      taken.push(queue(pool, jobOf(ids, { inMs, priority })))
    }
    const failed = (await Promise.allSettled(taken)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }
}

/**
 * Returns the delay after which the service tries a mail again that found no free job slot. The delay must not be
 * short, because the waiting mails may occupy their job slots for seconds. Each futile attempt costs the database as
 * much as storing a mail.
 */
const laterBy = (priority: number, returnInMs: number): number => returnInMs * (1 + priority / 2)

const sizeOf = (mail: InboundMail | LargeInboundMail): number =>
  'bytes' in mail ? mail.bytes.length : mail.size

/**
 * Returns which fraction of a job slot (place for a running job) one mail of a batch takes. There are two such
 * fractions, and the larger one counts: one slot divided by the number of mails in the batch, and the mail's size
 * divided by the bytes of a full slot. The result is a multiple of 1/1024, so that sums of fractions are exact.
 */
const partOf = (mail: InboundMail | LargeInboundMail, batch: number): number =>
  Math.ceil(1024 * Math.max(1 / batch, Math.min(1, sizeOf(mail) / PART_BYTES))) / 1024

/**
 * Returns the job that retries the given mails. If a batch was split, the retry of a mail has its own job key. With the
 * job key of the batch, the retry would replace the job of the batch, and a crash would then lose the other mails of
 * the batch.
 */
function jobOf(
  ids: readonly string[],
  {
    inMs = 0,
    priority = 0,
    unsureSince,
  }: { inMs?: number; priority?: number; unsureSince?: string | undefined } = {},
): NewJob<'parse_inbound'> | NewJob<'parse_batch'> {
  const times = { inMs, priority }
  const [inboundId] = ids as [string]
  const payload = { inboundId, ...(unsureSince === undefined ? {} : { unsureSince }) }
  return ids.length === 1
    ? { task: 'parse_inbound', payload, key: `parse_inbound:${inboundId}`, ...times }
    : {
        task: 'parse_batch',
        payload: { inboundIds: [...ids] },
        key: `parse_batch:${inboundId}:${ids.length}`,
        ...times,
      }
}

const queue = (pool: Pool, job: NewJob<'parse_inbound'> | NewJob<'parse_batch'>): Promise<void> =>
  patiently(() => addJob<'parse_inbound' | 'parse_batch'>(pool, job))
