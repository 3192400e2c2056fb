import {
  countCheck,
  countRepeat,
  freePlace,
  takePlace,
} from '../../../../sql/account/keys/redeemPlaces.ts'
import { GateRefusal, REDEEM_PATH, refusalOver, tooManyRequests } from '../../../http/gate.ts'
import { type RequestState, stateOf } from '../../../http/requestState.ts'
import type { Services } from '../../../http/services.ts'

/**
 * Limits the redeem calls a minute for one payment that already exists. A payer usually makes about three calls a
 * minute, because a call waits 25 s for a pending payment. If the operator has set a shorter wait, a payer may make a
 * call every second. Each payment has a separate count. Anybody can repeat a payment header that the chain shows, and
 * this must not use up the calls of other payments.
 */
const REPEATS_MAX = 60

/**
 * Decides which redeem calls use up the limit of new payments. One unit of this limit is called a place. A call without
 * a new payment gives its place back, because anybody can send any header to a seller's paywall, which forwards each
 * header. The functions throw 429 if a call exceeds its limit.
 */
export type RedeemPlaces = {
  /**
   * Tells whether earlier calls in this minute have used up the limit of new payments. A new payment then needs a place
   * (a unit of this limit) that an earlier call has freed.
   */
  isLate: boolean
  /**
   * Frees the place (a unit of the limit of new payments) of a call that makes no new payment, whether the call had the
   * place from its start or got it by `take`. A second call of the function changes nothing.
   */
  free(): Promise<void>
  /**
   * Takes a place (a unit of the limit of new payments) that an earlier call has freed. A call for a new payment needs
   * this if earlier calls held all places when it began.
   */
  take(): Promise<void>
  /** Counts a redeem call for a payment that already exists. */
  repeat(paymentId: string): Promise<void>
  /**
   * Counts a redeem call whose signature only the chain can check. The call does not count in the limit of new
   * payments, because anyone can make such a signature and could use up the limit.
   */
  check(): Promise<void>
}

const nothing = async () => {}

/** Counts no call. The service uses this object for calls without a limit of payments, such as calls of the facilitator. */
export const NO_PLACES: RedeemPlaces = {
  isLate: false,
  free: nothing,
  take: nothing,
  repeat: nothing,
  check: nothing,
}

/** Creates the functions that count one redeem call. @throws {GateRefusal} 429 from each of these functions. */
export function redeemPlaces(
  { pool, config }: Pick<Services, 'pool' | 'config'>,
  projectId: string,
  request: Request,
): RedeemPlaces {
  const state = stateOf(request)
  const { usage } = state
  if (usage === null) return NO_PLACES
  state.usage = null
  const limit = config.limits.requestsPerMinute
  const isLate = usage.used > limit
  const { budget } = state
  /** Holds the end of the minute in whose limit of new payments the call counts. */
  let heldUntil = isLate ? null : usage.resetsAt
  const free = async () => {
    if (heldUntil === null) return
    const resetsAt = heldUntil
    heldUntil = null
    // The call makes no payment. Therefore the code restores the count in the rate-limit headers that the call had
    // before it took a place (a unit of the limit of new payments).
    state.budget = budget
    await freePlace(pool, projectId, resetsAt)
  }
  const orRefuse = (refusal: GateRefusal | null) => {
    if (refusal !== null) throw refusal
  }
  return {
    isLate,
    free,
    async take() {
      const place = await takePlace(pool, projectId, usage.resetsAt)
      state.budget = { limit, ...(place ?? { remaining: 0, resetsAt: usage.resetsAt }) }
      if (place === null) throw new GateRefusal(tooManyRequests(state.budget), state.budget)
      heldUntil = place.resetsAt
    },
    async repeat(paymentId) {
      const [used] = await Promise.all([countRepeat(pool, paymentId), free()])
      orRefuse(refusalOver(used, REPEATS_MAX))
    },
    async check() {
      const [used] = await Promise.all([countCheck(pool, projectId), free()])
      orRefuse(refusalOver(used, limit))
    },
  }
}

/**
 * Takes a redeem call out of the limit of new payments if it reached no handler, because its body is too large or has a
 * wrong form. Anybody can cause such a call at the paywall of an MCP tool, where a payment is an object of any form.
 */
export async function freeUnread(
  { pool, config }: Pick<Services, 'pool' | 'config'>,
  { route, usage, identity }: RequestState,
): Promise<void> {
  const projectId = identity?.projectId ?? null
  if (route?.path !== REDEEM_PATH || usage === null || projectId === null) return
  if (usage.used <= config.limits.requestsPerMinute)
    await freePlace(pool, projectId, usage.resetsAt)
}
