/**
 * Forms groups of payments, each of which one transaction settles. The job of one payment wakes the settler (which
 * settles payments), which takes all waiting payments. Therefore the size of a group does not depend on the number of
 * concurrent jobs. No timer starts a group: the payments that arrive while one group is being settled form the next
 * group.
 */
import { isDatabaseUnavailable } from '../../../shared/process/databaseAway.ts'
import {
  findUntaken,
  queueSettlement,
  takeWaiting,
  type WaitingCursor,
} from '../../../sql/till/settle/settlementQueue.ts'
import { type ChainView, isKnown, type KnownChain } from '../chain/chainView.ts'
import { after, GROUP_STATES, type GroupState, LOOK_STATES, type LookState } from './laneStates.ts'
import { GROUP_MAX } from './paymentGroup.ts'
import { settlePayments } from './settler.ts'

/**
 * Sets the milliseconds after which a second group of payments may begin while the first group still runs. With a
 * nearby chain node, the first group ends before this time. This is better, because two groups at once slow each other
 * down. With 50 concurrent payments, one group at a time has 0.85 times the median latency of two groups.
 */
const LATE_MS = 250
/**
 * Sets the fraction of a group that one project may fill while several projects wait. This fraction is a quarter,
 * because the payments of one project may make the whole group revert.
 */
const SHARE_DIVISOR = 4
/**
 * Limits how many payments with separate transactions are settled at once, because each of them occupies a job slot.
 * Half of the job slots in the worker pool stay free, so that the settlement of groups can still start.
 */
const ALONE_MAX = 16
/**
 * Sets the delay after which a settlement job is retried if the lane (queue) for single payments is full. If the lane
 * has room before the retry, the payment is settled without waiting for the retry.
 */
const ALONE_DELAY_MS = 500
const ALONE_DELAY_EACH_MS = 6
/**
 * Sets after which delay the settler (which settles payments) reads the waiting payments again if another process has
 * locked the row of one of them.
 */
const LOCKED_DELAY_MS = 50

type Lane = 'grouped' | 'alone'
type Waiting = { promise: Promise<void>; resolve: () => void; reject: (error: unknown) => void }

export type SettlementLanes = {
  /** Resolves when the payment is sent, or has ended, or has a new job that is queued for a later time. */
  settle(paymentId: string): Promise<void>
  /** Resolves when no payment is being settled in this process. */
  drain(): Promise<void>
}

/**
 * Creates the settlement lanes (queues of payments) of one process. Payments with separate transactions have a lane of
 * their own, so that they never delay the payment groups.
 */
export function createSettlementLanes(view: ChainView): SettlementLanes {
  /**
   * Holds the waiting settlement jobs by the ids of their payments. One read of the waiting payments takes all
   * settlement jobs that wait. If a settlement job arrives while the waiting payments are being read, the job waits for
   * the next read.
   */
  const asked = new Map<string, Waiting>()
  const inHand = new Map<string, Promise<unknown>>()
  /**
   * Holds the payments that this process has begun to settle and then abandoned. The process may take these payments
   * again, even if the database still records it as their settler.
   */
  const dropped = new Set<string>()
  let look: LookState = 'idle'
  let groups: GroupState = 'free'
  /** Holds the time at which the last group of payments began, in milliseconds of performance.now(). */
  let groupMs = 0
  let lateTimer: ReturnType<typeof setTimeout> | undefined
  let aloneInHand = 0
  /**
   * Marks the payment at which the next read of the waiting payments begins. `null` means that the next read begins
   * with the oldest payment. The mark moves only if the backlog is too long for one read.
   */
  let place: WaitingCursor | null = null
  /** Tells whether the last read of the waiting payments left some payments waiting. */
  let othersWait = false
  let drained: (() => void)[] = []

  const run = async (lane: Lane, ids: readonly string[], jobs: Map<string, Waiting>) => {
    const own = new Map(ids.flatMap((id) => (jobs.has(id) ? [[id, jobs.get(id)!]] : [])))
    for (const id of own.keys()) jobs.delete(id)
    if (lane === 'alone') aloneInHand += ids.length
    else {
      groups = after(GROUP_STATES, groups, 'begun')
      groupMs = performance.now()
    }
    const work = settleAll(view, ids)
    for (const id of ids) inHand.set(id, work)
    const errors = await work
    for (const id of ids) {
      inHand.delete(id)
      if (!errors.has(id)) own.get(id)?.resolve()
      else if (own.has(id)) {
        dropped.add(id)
        own.get(id)!.reject(errors.get(id))
      }
    }
    if (lane === 'alone') aloneInHand -= ids.length
    else groups = after(GROUP_STATES, groups, 'ended')
    pump()
  }

  /**
   * Returns how many milliseconds remain until another group of payments may begin. Returns `null` if no group may
   * begin before a running group ends.
   */
  const nextGroupInMs = (): number | null => {
    if (groups === 'free') return 0
    return groups === 'two groups' ? null : Math.max(0, groupMs + LATE_MS - performance.now())
  }

  const takeOn = async (chain: KnownChain, jobs: Map<string, Waiting>) => {
    const mayGroup = nextGroupInMs() === 0
    const room = { grouped: mayGroup ? GROUP_MAX : 0, alone: ALONE_MAX - aloneInHand }
    const own = [...jobs.keys()].filter((id) => dropped.has(id))
    const { grouped, alone, next } = await takeFrom(chain, own, room, place)
    // The mark `place`, at which the next read begins, moves only if this read of the waiting payments had room for a
    // group. Otherwise the next read could skip payments that the next group needs.
    if (mayGroup) place = next
    for (const id of [...grouped.taken, ...alone.taken]) dropped.delete(id)
    if (grouped.taken.length > 0) void run('grouped', grouped.taken, jobs)
    if (alone.taken.length > 0) void run('alone', alone.taken, jobs)
    await leave(chain, jobs, alone.more)
    // `othersWait` does not count payments whose rows another process has locked, because an immediate second read
    // would still find these rows locked.
    othersWait = grouped.more + alone.more > 0 || next !== null
    // All payments that this read considered may need the lane (queue) of single payments, which is full. Therefore the
    // next read looks at later payments.
    if (next !== null && mayGroup && grouped.taken.length + alone.taken.length === 0) {
      look = after(LOOK_STATES, look, 'asked')
    }
    const inMs = grouped.more > 0 ? nextGroupInMs() : null
    // When this read of the waiting payments began, a second group of payments was not allowed. By now, the first group
    // may have run for longer than LATE_MS. A second group is then allowed, so the settler (which settles payments)
    // reads the waiting payments again.
    if (inMs === 0 && (grouped.taken.length > 0 || !mayGroup)) {
      look = after(LOOK_STATES, look, 'asked')
    }
    if (inMs !== null && inMs > 0) {
      clearTimeout(lateTimer)
      lateTimer = setTimeout(pump, inMs)
    }
  }

  /**
   * Ends the settlement jobs of payments that no longer need to be settled. The jobs of the other payments continue to
   * wait.
   */
  const leave = async (chain: KnownChain, jobs: Map<string, Waiting>, aloneMore: number) => {
    const untaken = await findUntaken(chain.pool, [...jobs.keys()], {
      chainId: chain.network.chainId,
      headTime: chain.head.timestamp,
    })
    const left = new Set(untaken.map(({ id }) => id))
    for (const id of [...jobs.keys()]) {
      if (left.has(id)) continue
      dropped.delete(id)
      end(jobs, id)
    }
    const looked: string[] = []
    let aloneJobs = aloneInHand
    let isLocked = false
    for (const { id, state, goesAlone, settleAfter } of untaken) {
      if (state === 'open') looked.push(id)
      else if (state === 'sent') end(jobs, id)
      else if (settleAfter !== null) await putOff(jobs, id, settleAfter)
      else if (goesAlone && ++aloneJobs > ALONE_MAX) {
        const delayMs = Math.max(ALONE_DELAY_MS, aloneMore * ALONE_DELAY_EACH_MS)
        await putOff(jobs, id, { inMs: delayMs })
      } else {
        isLocked ||= goesAlone ? aloneInHand === 0 : groups === 'free'
        askAgain(id, jobs.get(id)!)
        jobs.delete(id)
      }
    }
    if (looked.length > 0) void run('alone', looked, jobs)
    if (isLocked) setTimeout(pump, LOCKED_DELAY_MS)
  }

  const end = (jobs: Map<string, Waiting>, id: string) => {
    jobs.get(id)?.resolve()
    jobs.delete(id)
  }

  const putOff = async (jobs: Map<string, Waiting>, id: string, due: Date | { inMs: number }) => {
    await queueSettlement(view.pool, id, due)
    end(jobs, id)
  }

  const askAgain = (id: string, waiting: Waiting) => {
    const newer = asked.get(id)
    if (newer === undefined) asked.set(id, waiting)
    else newer.promise.then(waiting.resolve, waiting.reject)
  }

  const take = async () => {
    const jobs = new Map([...asked].filter(([id]) => !inHand.has(id)))
    for (const id of jobs.keys()) asked.delete(id)
    try {
      if (isKnown(view)) return await takeOn(view, jobs)
      await settlePayments(view, [...jobs.keys()])
      for (const id of [...jobs.keys()]) end(jobs, id)
    } catch (error) {
      for (const [id, waiting] of jobs) {
        dropped.add(id)
        waiting.reject(error)
      }
    }
  }

  const pump = () => {
    const isAtWork = look !== 'idle'
    if (!isAtWork && asked.size === 0 && !othersWait) return finish()
    look = after(LOOK_STATES, look, 'asked')
    if (!isAtWork) void lookOn()
  }

  /**
   * Reads the waiting payments. If a settlement job arrived while the payments were being read, reads the waiting
   * payments again.
   */
  const lookOn = async () => {
    do {
      if (asked.size > 0 || othersWait) await take()
      look = after(LOOK_STATES, look, 'looked')
    } while (look !== 'idle')
    finish()
  }

  const finish = () => {
    if (look !== 'idle' || asked.size > 0 || inHand.size > 0) return
    for (const resolve of drained) resolve()
    drained = []
  }

  return {
    async settle(paymentId) {
      // The code first waits for the end of a running settlement of this payment. If the payment's transaction reverted
      // meanwhile, the job requests another settlement.
      await inHand.get(paymentId)
      const waiting = asked.get(paymentId) ?? Promise.withResolvers<void>()
      asked.set(paymentId, waiting)
      pump()
      return waiting.promise
    },
    drain() {
      const { promise, resolve } = Promise.withResolvers<void>()
      drained.push(resolve)
      finish()
      return promise
    },
  }
}

/**
 * Takes waiting payments, beginning after a given payment of the backlog. If the backlog ends before the lanes (queues
 * of payments) are full, takes the oldest payments too.
 */
async function takeFrom(
  chain: KnownChain,
  own: readonly string[],
  room: Record<Lane, number>,
  place: WaitingCursor | null,
): ReturnType<typeof takeWaiting> {
  const take = (places: Record<Lane, number>, after: WaitingCursor | null) =>
    takeWaiting(chain.pool, {
      chainId: chain.network.chainId,
      own,
      room: { grouped: roomFor(places.grouped), alone: roomFor(places.alone) },
      after,
    })
  const last = await take(room, place)
  const left = {
    grouped: room.grouped - last.grouped.taken.length,
    alone: room.alone - last.alone.taken.length,
  }
  if (place === null || last.next !== null || left.grouped + left.alone === 0) return last
  const oldest = await take(left, null)
  const both = (lane: Lane) => ({
    taken: [...new Set([...last[lane].taken, ...oldest[lane].taken])],
    more: oldest.next === null ? oldest[lane].more : last[lane].more + oldest[lane].more,
  })
  // The next read of the waiting payments begins with the oldest payments again, because a full lane (queue of
  // payments) may have left some of them.
  return { grouped: both('grouped'), alone: both('alone'), next: null }
}

const roomFor = (most: number) => ({ most, share: Math.ceil(most / SHARE_DIVISOR) })

/**
 * Settles several payments together. A bug that affects one payment does not stop the other payments. @returns the
 * error of each payment that failed, by payment id.
 */
async function settleAll(view: ChainView, ids: readonly string[]): Promise<Map<string, unknown>> {
  try {
    await settlePayments(view, ids)
    return new Map()
  } catch (error) {
    if (ids.length === 1 || isDatabaseUnavailable(error)) {
      return new Map(ids.map((id) => [id, error]))
    }
    const errors = new Map<string, unknown>()
    for (const id of ids) for (const one of await settleAll(view, [id])) errors.set(...one)
    return errors
  }
}
