/**
 * Shares the slots of a pool between fast and slow receivers. docs/fair-shares.md defines the words: a lane is the work
 * for one receiver, such as the requests to one endpoint or the mail to one domain. A sharer is one project, and its
 * slow lanes share a budget. A slot is one of the jobs that the pool runs at the same time.
 *
 * A slow receiver occupies a slot (place for a running job) until the time-out. Without a limit, one slow receiver, or
 * one tenant with many receivers, would take every slot and delay all other work. A lane is the queue for one receiver.
 * A job of a fast lane may wait in its slot for a moment until it may send. A job of a slow lane is refused, and gets a
 * time at which it may ask again. A refusal costs one SQL statement, and does not count as an attempt of the job.
 */

/**
 * Sets the limits of the lanes (queues for one receiver) for one kind of work, such as webhooks. Each cap limits
 * concurrent requests.
 */
export type LaneLimits = {
  /**
   * Limits the concurrent requests of one lane (the queue for one receiver). For a slow lane, `slowLaneCap` applies.
   */
  laneCap: number
  slowLaneCap: number
  /** Limits the concurrent requests that all slow lanes (queues for one receiver) of one project have together. */
  slowSharerCap: number
  /**
   * Sets the milliseconds from which a lane (the queue for one receiver) counts as slow. Both the average response time
   * of the lane and the age of its oldest open request are compared with this limit.
   */
  slowMs: number
  /**
   * Sets the milliseconds from which a lane (the queue for one receiver) counts as late. The age of its oldest open
   * request is compared with this limit, because a receiver that was fast before may hang now.
   */
  lateMs: number
  /**
   * Tells whether a lane (the queue for one receiver) counts as fast before its host has responded for the first time.
   */
  trusting: boolean
  /**
   * If a job could not send in its lane (the queue for one receiver), the job is retried after at least this many
   * milliseconds.
   */
  returnMs: number
  /**
   * Limits the fraction of all slots that one project occupies in all lanes (queues for one receiver) together. If it
   * is absent, only the other limits apply.
   */
  sharerPart?: number
  /**
   * Limits the fraction of the pool's slots that all lanes (queues for one receiver) together occupy. The other slots
   * are for jobs without a lane. If it is absent, the lanes share all slots.
   */
  poolPart?: number
  /**
   * If set, a job that may not send at once is refused and does not wait in its slot, because other jobs need the slot
   * more.
   */
  neverWaits?: boolean
}

const WEBHOOK_LIMITS: LaneLimits = {
  laneCap: 32,
  slowLaneCap: 4,
  slowSharerCap: 16,
  slowMs: 500,
  lateMs: 500,
  trusting: true,
  returnMs: 250,
}

/**
 * Sets the limits of the lanes (queues for one receiver) for mail, because sending a mail takes about a second, whereas
 * a webhook takes a tenth of a second. A mail host that hangs may hang for minutes.
 */
export const MAIL_LIMITS: LaneLimits = {
  laneCap: 10,
  slowLaneCap: 2,
  slowSharerCap: 8,
  slowMs: 10_000,
  lateMs: 1_000,
  trusting: false,
  returnMs: 1_000,
}

/**
 * Sets the limits of the lanes (queues for one receiver) for purchases, because a seller that settles a payment on the
 * chain needs some seconds for its response. A lane belongs to one project and one seller.
 */
export const PURSE_LIMITS: LaneLimits = {
  laneCap: 64,
  slowLaneCap: 8,
  slowSharerCap: 16,
  slowMs: 8_000,
  lateMs: 8_000,
  trusting: true,
  returnMs: 250,
  sharerPart: 1 / 3,
}

/**
 * Sets the limits of the lanes (queues for one project each) for the checks of payments. A check takes a fraction of a
 * second, or 5 s if the chain node does not answer. With 32 slots, the checks of one project may occupy 6 slots. These
 * are enough for the 1,200 checks that a project may request in a minute, at 300 ms a check. The checks of all projects
 * may occupy 15 slots. The other 17 slots serve the settlement, which uses up to 16 slots for payments in separate
 * transactions.
 */
export const CHECK_LIMITS: LaneLimits = {
  laneCap: 6,
  slowLaneCap: 2,
  slowSharerCap: 2,
  slowMs: 2_000,
  lateMs: 2_000,
  trusting: true,
  // A shorter retry delay would be useless, because the pool looks for due jobs only every 200 ms.
  returnMs: 200,
  poolPart: 1 / 2,
  neverWaits: true,
}

/**
 * Limits the milliseconds for which a job waits in its slot until it may send. A job that would have to wait longer is
 * refused.
 */
const WAIT_MAX_MS = 100
/**
 * The following constants apply to a lane (the queue for one receiver) whose host has not responded yet. The first
 * limits how many jobs wait, and UNPROVEN_MS is the assumed response time.
 */
const UNPROVEN_WAITING_MAX = 64
const UNPROVEN_MS = 20
/**
 * The following constants limit the milliseconds between two retries of jobs of the same lane (the queue for one
 * receiver) that could not send.
 */
const RETURN_SPACING_MAX_MS = 100
const RETURN_SPACING_MIN_MS = 5
/** Limits the number of lanes (queues for one receiver) whose speed the process remembers. */
const LANES_MAX = 10_000

/**
 * Describes an open request in a lane (the queue for one receiver). The object names the project that sends the
 * request, because several projects may send mail to one domain.
 */
type Request = { lane: Lane; sharer: string; sinceMs: number }

type Lane = {
  /**
   * Holds the open HTTP requests or SMTP connections of a lane (the queue for one receiver), oldest first.
   */
  open: Set<Request>
  waiting: { sharer: string; resolve: (turn: Turn) => void }[]
  averageMs: number | null
  /**
   * Maps each sharer (project) to the time at which its last refused job is retried. A later refused job gets a later
   * time, so that refused jobs do not all ask again at once.
   */
  returns: Map<string, Return>
}

/**
 * Describes when the last refused job of a sharer (project) may ask again for a slot. The field `wasHeld` tells whether
 * the lane was slow or late at the refusal. Until the time `waitsUntilMs`, the sharer counts as waiting for a place in
 * the lane.
 */
type Return = { atMs: number; wasHeld: boolean; waitsUntilMs: number }

const newLane = (): Lane => ({
  open: new Set(),
  waiting: [],
  averageMs: null,
  returns: new Map(),
})

/**
 * Describes the response to a job that asks whether it may send in its lane (the queue for one receiver). A job that
 * gets permission calls `leave` when it has finished. A refused job may ask again after `returnInMs`.
 */
export type Turn =
  | { granted: true; waited: boolean; leave: () => void }
  | { granted: false; returnInMs: number }

/**
 * Shares the job slots of a worker pool between lanes (each lane is the queue for one receiver). Each worker pool has
 * one instance of this class in each process.
 *
 * Some job slots are reserved: a tenth for work without a receiver, a tenth for projects without an open request, and a
 * quarter for receivers without an open request. A lane (the queue for one receiver) may occupy at most half of the
 * remaining free slots. Therefore each new lane gets fewer slots than the lane before it, and all lanes together never
 * use all slots. This matters when many receivers begin to hang at once, because each of them still counts as fast for
 * a while.
 */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #shared = newLane()
  readonly #open = new Set<Request>()
  readonly #slowCap: number
  readonly #reserve: number
  readonly #spare: number
  readonly #slots: number
  readonly #nowMs: () => number
  readonly #limits: LaneLimits

  /**
   * @param slots is the number of jobs that the worker pool runs at the same time. All slow lanes (queues for one
   * receiver) together get at most half of the slots. If the limits give the lanes only a part of the pool
   * (`poolPart`), these fractions refer to this part.
   */
  constructor(slots: number, limits = WEBHOOK_LIMITS, nowMs = () => performance.now()) {
    this.#nowMs = nowMs
    this.#limits = limits
    const shared = Math.max(1, Math.floor(slots * (limits.poolPart ?? 1)))
    this.#slots = shared
    this.#slowCap = Math.max(1, Math.floor(shared / 2))
    this.#reserve = Math.floor(shared / 10)
    this.#spare = Math.floor(shared / 4)
  }

  /**
   * Asks for a job slot in a lane (the queue for one receiver), and waits at most about WAIT_MAX_MS.
   * @param name is the name of the lane, which is an endpoint or a mail domain. The name `null` means the lane that all
   * mail to the smarthost shares. Mail in this shared lane leaves a quarter of the slots free.
   */
  async enter(name: string | null, sharer: string): Promise<Turn> {
    const lane = this.#lane(name)
    const isBehind = lane.waiting.some((waiter) => waiter.sharer === sharer)
    if (!isBehind && this.#hasRoom(lane, sharer)) return this.#start(lane, sharer, false)
    if (!this.#mayWait(lane)) return this.#refuse(lane, sharer)
    const { promise, resolve } = Promise.withResolvers<Turn>()
    const waiter = { sharer, resolve }
    lane.waiting.push(waiter)
    const timer = setTimeout(() => {
      lane.waiting = lane.waiting.filter((other) => other !== waiter)
      resolve(this.#refuse(lane, sharer))
    }, WAIT_MAX_MS * 1.5)
    const turn = await promise
    clearTimeout(timer)
    return turn
  }

  #lane(name: string | null): Lane {
    if (name === null) return this.#shared
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    if (this.#lanes.size >= LANES_MAX) this.#forgetIdle()
    const lane = newLane()
    this.#lanes.set(name, lane)
    return lane
  }

  #forgetIdle(): void {
    for (const [name, lane] of this.#lanes) {
      if (lane.open.size === 0 && lane.waiting.length === 0) this.#lanes.delete(name)
    }
  }

  #hasRoom(lane: Lane, sharer: string): boolean {
    const free = this.#slots - this.#reserve - this.#open.size
    if (free <= 0) return false
    const requests = [...this.#open]
    const isKnown = requests.some((request) => request.sharer === sharer)
    if (isKnown && free <= this.#reserve) return false
    const { sharerPart = 1 } = this.#limits
    const held = requests.filter((request) => request.sharer === sharer).length
    if (held > 0 && held >= Math.floor(this.#slots * sharerPart)) return false
    // The smarthost accepts only a few connections, so more slots would not send faster. The other slots serve local
    // mail and notifications even if the smarthost hangs.
    if (lane === this.#shared) {
      const all = this.#slots - this.#reserve - this.#spare
      return free > this.#spare + this.#leftForOthers(lane, sharer, all)
    }
    if (lane.open.size > 0 && lane.open.size >= free - this.#spare) return false
    if (this.#isLate(lane) && this.#late(requests) >= this.#slowCap) return false
    const isSlow = this.#isSlow(lane)
    if (lane.open.size >= this.#capFor(lane, sharer, isSlow)) return false
    if (!isSlow) return true
    const slow = requests.filter((request) => this.#isSlow(request.lane))
    const own = slow.filter((request) => request.sharer === sharer).length
    const cap = own === 0 ? this.#slowCap : this.#slowCap - this.#reserve
    return slow.length < cap && own < this.#limits.slowSharerCap
  }

  /**
   * Returns how many requests a lane (the queue for one receiver) may have open after a request of the given sharer
   * (project).
   */
  #capFor(lane: Lane, sharer: string, isSlow: boolean): number {
    const cap = isSlow ? this.#limits.slowLaneCap : this.#limits.laneCap
    return cap - this.#leftForOthers(lane, sharer, cap)
  }

  /**
   * Returns how many places of a lane (the queue for one receiver) a sharer (project) leaves free for others. If the
   * lane has lately refused another sharer that has no open request, the number is a fifth of the places, and else 0.
   * Without this rule, the backlog of one project would take each place that becomes free, and the mail of other
   * projects to the same domain would wait for hours.
   */
  #leftForOthers(lane: Lane, sharer: string, places: number): number {
    const open = new Set(lane.open.values().map((request) => request.sharer))
    if (!open.has(sharer)) return 0
    const nowMs = this.#nowMs()
    const isAwaited = lane.returns
      .entries()
      .some(([name, { waitsUntilMs }]) => !open.has(name) && waitsUntilMs > nowMs)
    return isAwaited ? Math.ceil(places / 5) : 0
  }

  #mayWait(lane: Lane): boolean {
    if (this.#limits.neverWaits) return false
    // If a lane (the queue for one receiver) has no open request, nobody will call `leave`, and a waiting job would
    // never be woken.
    if (lane.open.size === 0 || this.#isSlow(lane) || this.#isLate(lane)) return false
    if (lane.averageMs === null && lane.waiting.length >= UNPROVEN_WAITING_MAX) return false
    const turns = (lane.waiting.length + 1) / this.#limits.laneCap
    return turns * (lane.averageMs ?? UNPROVEN_MS) <= WAIT_MAX_MS
  }

  #start(lane: Lane, sharer: string, waited: boolean): Turn {
    const request = { lane, sharer, sinceMs: this.#nowMs() }
    lane.open.add(request)
    this.#open.add(request)
    const leave = () => {
      if (!lane.open.delete(request)) return
      this.#open.delete(request)
      const ms = this.#nowMs() - request.sinceMs
      lane.averageMs = lane.averageMs === null ? ms : lane.averageMs * 0.7 + ms * 0.3
      for (const waiter of lane.waiting) {
        if (!this.#hasRoom(lane, waiter.sharer)) continue
        lane.waiting = lane.waiting.filter((other) => other !== waiter)
        waiter.resolve(this.#start(lane, waiter.sharer, true))
      }
    }
    return { granted: true, waited, leave }
  }

  #refuse(lane: Lane, sharer: string): Turn {
    const nowMs = this.#nowMs()
    const isHeld = this.#isSlow(lane) || this.#isLate(lane)
    const last = lane.returns.get(sharer)
    for (const [name, { atMs, waitsUntilMs }] of lane.returns) {
      if (Math.max(atMs, waitsUntilMs) < nowMs) lane.returns.delete(name)
    }
    // Each sharer (project) has its own queue of retry times. The code multiplies the time between two retries by the
    // number of sharers. Therefore all queues together cause no more retries than one queue.
    const sharers = lane.returns.size + (lane.returns.has(sharer) ? 0 : 1)
    const spacingMs = this.#returnSpacingMs(lane) * sharers
    const delayMs = Math.max(this.#limits.returnMs, spacingMs)
    // After a receiver has recovered, new jobs need not wait behind the many jobs that were refused while it was slow.
    // Therefore the code ignores the retry times of those jobs.
    const isNew = last === undefined || (last.wasHeld && !isHeld)
    const atMs = Math.max(nowMs + delayMs, isNew ? 0 : last.atMs + spacingMs)
    lane.returns.set(sharer, { atMs, wasHeld: isHeld, waitsUntilMs: nowMs + 2 * delayMs })
    return { granted: false, returnInMs: atMs - nowMs }
  }

  #returnSpacingMs(lane: Lane): number {
    // The mail of a whole hour may wait in the smarthost's lane (queue). Therefore, when the smarthost works again,
    // this mail must be sent fast.
    if (lane === this.#shared) return RETURN_SPACING_MIN_MS
    if (this.#isLate(lane)) return RETURN_SPACING_MAX_MS
    const servedEveryMs = (lane.averageMs ?? UNPROVEN_MS) / this.#limits.laneCap
    return Math.min(Math.max(servedEveryMs, RETURN_SPACING_MIN_MS), RETURN_SPACING_MAX_MS)
  }

  #isSlow(lane: Lane): boolean {
    const { slowMs, trusting } = this.#limits
    if (lane.averageMs === null ? !trusting : lane.averageMs > slowMs) return true
    return this.#oldestMs(lane) > slowMs
  }

  #isLate = (lane: Lane): boolean => this.#oldestMs(lane) > this.#limits.lateMs

  #late(requests: readonly Request[]): number {
    const startedMs = this.#nowMs() - this.#limits.lateMs
    return requests.filter(({ sinceMs }) => sinceMs < startedMs).length
  }

  /**
   * Returns for how many milliseconds the oldest open request of a lane (the queue for one receiver) has waited for its
   * response.
   */
  #oldestMs(lane: Lane): number {
    const [oldest] = lane.open
    return oldest === undefined ? 0 : this.#nowMs() - oldest.sinceMs
  }
}
