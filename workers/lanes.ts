/**
 * Terminology
 *   lane    what must not hold up its neighbours: the requests to one endpoint, the mail to one domain
 *   owner   whose lanes share a budget while they are slow: one project
 *   slot    one of the jobs that the pool runs at the same time
 *
 * A slow receiver holds a slot for as long as the time-out. Without a bound, one of them (or one tenant with many) takes
 * every slot and everybody else is late. A fast lane may wait for its turn inside its slot, for a moment; a slow one is
 * sent away with a time to come back, at the price of one statement and no attempt.
 */

/** What one kind of work may take; the numbers are requests at the same time. */
export type LaneLimits = {
  /** Of one lane; of a slow one. */
  laneCap: number
  slowLaneCap: number
  /** Of one owner's slow lanes. */
  slowOwnerCap: number
  /** A lane whose answers take longer, or whose oldest open request does, is slow. */
  slowMs: number
  /** Whether a lane counts as fast before its first answer. */
  trusting: boolean
  /** Those sent away come back no sooner than this. */
  returnMs: number
}

const WEBHOOK_LIMITS: LaneLimits = {
  laneCap: 32,
  slowLaneCap: 4,
  slowOwnerCap: 16,
  slowMs: 500,
  trusting: true,
  returnMs: 250,
}

/** A mail takes a second where a webhook takes a tenth, and a host that hangs does so for minutes. */
export const MAIL_LIMITS: LaneLimits = {
  laneCap: 10,
  slowLaneCap: 2,
  slowOwnerCap: 8,
  slowMs: 10_000,
  trusting: false,
  returnMs: 1_000,
}

/** Waiting in a slot costs others that slot, so it must be short and is refused where it looks long. */
const WAIT_MAX_MS = 100
/** Waiting in a lane that never answered yet. */
const UNPROVEN_WAITING_MAX = 64
const UNPROVEN_MS = 20
/** Those sent away come back one by one, this far apart. */
const RETURN_SPACING_MAX_MS = 100
const RETURN_SPACING_MIN_MS = 5
/** Lanes whose speed is remembered. */
const LANES_MAX = 10_000

type Lane = {
  owner: string
  /** When each open request started. */
  open: Set<{ sinceMs: number }>
  waiting: ((turn: Turn) => void)[]
  averageMs: number | null
  lastReturnMs: number
}

/** A turn, to be ended by `leave`; or the time after which to come back. */
export type Turn =
  | { granted: true; waited: boolean; leave: () => void }
  | { granted: false; returnInMs: number }

/** Shares the slots of a pool between lanes. One per pool and process. */
export class Lanes {
  readonly #lanes = new Map<string, Lane>()
  readonly #slowCap: number
  readonly #nowMs: () => number
  readonly #limits: LaneLimits

  /** @param slots jobs that the pool runs at the same time; slow lanes get at most half of them. */
  constructor(slots: number, limits = WEBHOOK_LIMITS, nowMs = () => performance.now()) {
    this.#nowMs = nowMs
    this.#limits = limits
    this.#slowCap = Math.max(1, Math.floor(slots / 2))
  }

  /** Waits, if at all, about WAIT_MAX_MS. */
  async enter(name: string, owner: string): Promise<Turn> {
    const lane = this.#lane(name, owner)
    if (lane.waiting.length === 0 && this.#hasRoom(lane)) return this.#start(lane, false)
    if (!this.#mayWait(lane)) return this.#refuse(lane)
    const { promise, resolve } = Promise.withResolvers<Turn>()
    lane.waiting.push(resolve)
    const timer = setTimeout(() => {
      const place = lane.waiting.indexOf(resolve)
      if (place === -1) return
      lane.waiting.splice(place, 1)
      resolve(this.#refuse(lane))
    }, WAIT_MAX_MS * 1.5)
    const turn = await promise
    clearTimeout(timer)
    return turn
  }

  #lane(name: string, owner: string): Lane {
    const known = this.#lanes.get(name)
    if (known !== undefined) return known
    if (this.#lanes.size >= LANES_MAX) this.#forgetIdle()
    const lane: Lane = { owner, open: new Set(), waiting: [], averageMs: null, lastReturnMs: 0 }
    this.#lanes.set(name, lane)
    return lane
  }

  #forgetIdle(): void {
    for (const [name, lane] of this.#lanes) {
      if (lane.open.size === 0 && lane.waiting.length === 0) this.#lanes.delete(name)
    }
  }

  #hasRoom(lane: Lane): boolean {
    if (!this.#isSlow(lane)) return lane.open.size < this.#limits.laneCap
    if (lane.open.size >= this.#limits.slowLaneCap) return false
    let ofAll = 0
    let ofOwner = 0
    for (const other of this.#lanes.values()) {
      if (other.open.size === 0 || !this.#isSlow(other)) continue
      ofAll += other.open.size
      if (other.owner === lane.owner) ofOwner += other.open.size
    }
    return ofAll < this.#slowCap && ofOwner < this.#limits.slowOwnerCap
  }

  #mayWait(lane: Lane): boolean {
    if (this.#isSlow(lane)) return false
    if (lane.averageMs === null && lane.waiting.length >= UNPROVEN_WAITING_MAX) return false
    const turns = (lane.waiting.length + 1) / this.#limits.laneCap
    return turns * (lane.averageMs ?? UNPROVEN_MS) <= WAIT_MAX_MS
  }

  #start(lane: Lane, waited: boolean): Turn {
    const request = { sinceMs: this.#nowMs() }
    lane.open.add(request)
    const leave = () => {
      if (!lane.open.delete(request)) return
      const ms = this.#nowMs() - request.sinceMs
      lane.averageMs = lane.averageMs === null ? ms : lane.averageMs * 0.7 + ms * 0.3
      while (lane.waiting.length > 0 && this.#hasRoom(lane)) {
        lane.waiting.shift()!(this.#start(lane, true))
      }
    }
    return { granted: true, waited, leave }
  }

  #refuse(lane: Lane): Turn {
    const nowMs = this.#nowMs()
    const servedEveryMs = (lane.averageMs ?? UNPROVEN_MS) / this.#limits.laneCap
    const spacingMs = Math.min(
      Math.max(servedEveryMs, RETURN_SPACING_MIN_MS),
      RETURN_SPACING_MAX_MS,
    )
    lane.lastReturnMs = Math.max(nowMs + this.#limits.returnMs, lane.lastReturnMs + spacingMs)
    return { granted: false, returnInMs: lane.lastReturnMs - nowMs }
  }

  #isSlow(lane: Lane): boolean {
    const { slowMs, trusting } = this.#limits
    if (lane.averageMs === null ? !trusting : lane.averageMs > slowMs) return true
    // Requests start in the order of the set.
    const [oldest] = lane.open
    return oldest !== undefined && this.#nowMs() - oldest.sinceMs > slowMs
  }
}
