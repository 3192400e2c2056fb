import { isDatabaseUnavailable } from '../../shared/process/databaseAway.ts'
import { FairTurns } from '../../shared/process/fairTurns.ts'
import type { Blobs } from '../../sql/blobs/blobs.ts'
import type { Pool } from '../../sql/db.ts'
import { readRules, readRulesOf } from '../../sql/mail/emailRules.ts'
import { findInboundMail, findInboundMails, type InboundMail } from '../../sql/mail/inboundMails.ts'
import { addJob, type NewJob } from '../../sql/queue/jobs.ts'
import { patiently } from '../queue/patiently.ts'
import type { PoolContext, Task } from '../queue/task.ts'
import { Shares } from './shares.ts'
import {
  createStoreInbound,
  networkOf,
  type ParseOptions,
  SlowDnsError,
  type StoreInbound,
} from './storeInbound.ts'

/**
 * A job fetched this often without an end may hold a message that kills its process, or share the process with one.
 * From then on its message is parsed in a child process.
 */
const ATTEMPTS_BEFORE_ISOLATION = 3
/** For a batch: dozens of messages must not meet their killer again. */
const BATCH_ATTEMPTS_BEFORE_ISOLATION = 1

/** The database will always refuse a message that it refused this often: the message is stored unparsed. */
const ATTEMPTS_TO_STORE = 5

/** Every slot may hold a message up to this size. */
const SMALL_BYTES = 256 * 1024
/** Larger messages in memory at once. The parser takes ten times the size of a message. */
const LARGE_AT_ONCE = 4
/** A slot holds this many bytes of a batch. */
const PART_BYTES = 64 * 1024
/** A batch, which holds a slot, waits this long for DNS answers. */
const PATIENCE_MS = 1_000

type Tasks = { parse_inbound: Task<'parse_inbound'>; parse_batch: Task<'parse_batch'> }

/**
 * Parses inbound mails and stores them in their inboxes. Inboxes, and sending networks, share the slots. A mail that
 * finds its share in use comes back later.
 */
export function createParseInbound(context: PoolContext, options: ParseOptions): Tasks {
  const shares = new Shares(options.slots)
  const store = createStoreInbound(context, options)
  return {
    parse_inbound: createParseOne(context, options.blobs, store, shares),
    parse_batch: createParseBatch(context, store, shares),
  }
}

function createParseOne(
  { pool }: PoolContext,
  blobs: Blobs,
  store: StoreInbound,
  shares: Shares,
): Task<'parse_inbound'> {
  const large = new FairTurns({ total: LARGE_AT_ONCE, perOwner: LARGE_AT_ONCE / 2 })
  return async ({ inboundId }, { attempt }) => {
    const found = await findInboundMail(pool, blobs, inboundId, SMALL_BYTES)
    if (found === null) return
    const place = shares.enter(sharersOf(found))
    if (!place.granted) return await queue(pool, jobOf([inboundId], place.returnInMs))
    const readAndStore = async (inbound: InboundMail) =>
      store(inbound, {
        rules: await readRules(pool, inbound.projectId, ['RECEIVE']),
        isolated: attempt > ATTEMPTS_BEFORE_ISOLATION,
        storeAnyway: attempt > ATTEMPTS_TO_STORE,
        patienceMs: Number.POSITIVE_INFINITY,
      })
    let leaveLarge = () => {}
    try {
      if ('bytes' in found) return await readAndStore(found)
      leaveLarge = await large.enter(found.projectId)
      const inbound = await findInboundMail(pool, blobs, inboundId, found.size)
      if (inbound !== null && 'bytes' in inbound) await readAndStore(inbound)
    } finally {
      leaveLarge()
      place.leave()
    }
  }
}

/**
 * Parses a batch of small mails, each on its own from then on: one that waits for a name server holds up no other. A
 * mail that fails gets a job of its own.
 */
function createParseBatch(
  { pool, log }: PoolContext,
  store: StoreInbound,
  shares: Shares,
): Task<'parse_batch'> {
  return async ({ inboundIds }, { attempt }) => {
    const found = await findInboundMails(pool, inboundIds)
    const projects = [...new Set(found.map(({ projectId }) => projectId))]
    const rules = await readRulesOf(pool, projects, ['RECEIVE'])
    const isolated = attempt > BATCH_ATTEMPTS_BEFORE_ISOLATION
    const take = async (inbound: InboundMail, leave: () => void) => {
      try {
        const own = rules.get(inbound.projectId) ?? []
        await store(inbound, { rules: own, isolated, storeAnyway: false, patienceMs: PATIENCE_MS })
      } catch (error) {
        if (isDatabaseUnavailable(error)) throw error
        if (!(error instanceof SlowDnsError)) {
          log.warn({ inboundId: inbound.id, err: error }, 'a mail leaves its batch')
        }
        await queue(pool, jobOf([inbound.id]))
      } finally {
        leave()
      }
    }
    const refused = new Map<string, string[]>()
    const taken: Promise<unknown>[] = []
    for (const mail of found) {
      const crowded = shares.crowded(sharersOf(mail))
      if (!('bytes' in mail)) taken.push(queue(pool, jobOf([mail.id])))
      else if (crowded !== null) refused.set(crowded, [...(refused.get(crowded) ?? []), mail.id])
      else {
        const place = shares.enter(sharersOf(mail), partOf(mail, inboundIds.length))
        taken.push(take(mail, place.granted ? place.leave : () => {}))
      }
    }
    for (const [sharer, ids] of refused) {
      taken.push(queue(pool, jobOf(ids, shares.returnInMs(sharer, ids.length))))
    }
    const failed = (await Promise.allSettled(taken)).find(({ status }) => status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
  }
}

/** The part of a slot that a mail takes in a batch: of the job, or of the memory. Sums of 1/1024 are exact. */
const partOf = ({ bytes }: InboundMail, batch: number): number =>
  Math.ceil(1024 * Math.max(1 / batch, Math.min(1, bytes.length / PART_BYTES))) / 1024

const sharersOf = (mail: Pick<InboundMail, 'projectId' | 'remoteIp'>): string[] => [
  mail.projectId,
  networkOf(mail),
]

/**
 * The job of mails that come back. A part of a batch has another key than the batch: replacing that would lose the
 * rest after a crash.
 */
function jobOf(ids: readonly string[], inMs = 0): NewJob<'parse_inbound'> | NewJob<'parse_batch'> {
  const runAt = new Date(Date.now() + inMs)
  const [inboundId] = ids as [string]
  return ids.length === 1
    ? { task: 'parse_inbound', payload: { inboundId }, key: `parse_inbound:${inboundId}`, runAt }
    : {
        task: 'parse_batch',
        payload: { inboundIds: [...ids] },
        key: `parse_batch:${inboundId}:${ids.length}`,
        runAt,
      }
}

const queue = (pool: Pool, job: NewJob<'parse_inbound'> | NewJob<'parse_batch'>): Promise<void> =>
  patiently(() => addJob<'parse_inbound' | 'parse_batch'>(pool, job))
