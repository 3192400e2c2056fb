import {
  checkEndpointAnew,
  type EndpointCheck,
  findEndpointCheck,
  provokeEndpointCheck,
} from '../../../sql/till/endpoints/endpointChecks.ts'
import { badRequest, notFound } from '../../http/errors.ts'
import type { Services } from '../../http/services.ts'
import type { Offer } from '../payments/offer.ts'

/**
 * Sets how many milliseconds a request for a payment challenge waits at most for an endpoint check that has not started
 * yet.
 */
const WAIT_MS = 5_000
/**
 * Sets how many milliseconds a request for a payment challenge waits at most for a running endpoint check. The wait is
 * short, because the request may come from the seller's own server: the check calls this server, which may request a
 * challenge before it responds. The check can then end only after the service has returned the challenge.
 */
const RUNNING_WAIT_MS = 250
const POLL_MS = 100
/**
 * Sets the minimum number of milliseconds between two endpoint checks that requests for a payment challenge start. A
 * request that comes before this time is over waits for the next check. It is not refused at once, because a seller
 * that has just become reachable must be able to sell.
 */
const PROVOKE_PAUSE_MS = 2_000
/**
 * A timer may end slightly too early, so that some milliseconds of the wait remain. If at most this many milliseconds
 * remain, the request for a challenge waits again.
 */
const EARLY_MAX_MS = 250

/**
 * Refuses a payment challenge for an endpoint that is paused or unreachable. If the last check could not reach the
 * endpoint, the service first checks it again.
 * @throws {ApiError} 400 if the endpoint is paused, or if the check could not reach the endpoint.
 */
export async function checkReachable({ pool }: Services, offer: Offer): Promise<void> {
  const { endpointId, verification } = offer
  if (verification === 'paused') {
    throw badRequest(
      `The endpoint is paused: PATCH /v0/sellers/endpoints/${endpointId} with active true lets it sell again`,
    )
  }
  if (endpointId === null || (verification !== 'pending' && verification !== 'unreachable')) return
  if (verification === 'unreachable') await provokeCheck(pool, endpointId)
  const { check, isOurs } = await waitForCheck(pool, endpointId)
  if (check.status !== 'unreachable' || isOurs) return
  throw badRequest(
    `The endpoint was unreachable from the internet at ${check.checkedAt?.toISOString()} (${check.detail}). ` +
      `POST /v0/sellers/endpoints/${endpointId}/verify checks it again, and so does each challenge`,
  )
}

async function provokeCheck(pool: Services['pool'], id: string): Promise<void> {
  const provoke = () => provokeEndpointCheck(pool, id, PROVOKE_PAUSE_MS)
  let restMs = await provoke()
  // A timer can end slightly before the pause between two checks of the endpoint is over by the database's clock. The
  // loop then waits again, because the service would otherwise refuse the challenge by the result of the previous
  // check. If a long time remains, another request has started a check meanwhile, so the loop ends.
  for (let maxMs = Number.POSITIVE_INFINITY; restMs > 0 && restMs < maxMs; maxMs = EARLY_MAX_MS) {
    await Bun.sleep(Math.ceil(Math.min(restMs, PROVOKE_PAUSE_MS)))
    restMs = await provoke()
  }
}

/**
 * Checks an endpoint again and waits for the result of the check.
 * @throws {ApiError} 404 for an unknown endpoint.
 */
export async function checkAnew(
  { pool }: Services,
  target: { projectId: string; id: string },
): Promise<void> {
  if (!(await checkEndpointAnew(pool, target))) throw notFound('Endpoint not found')
  const untilMs = performance.now() + WAIT_MS
  while (performance.now() < untilMs) {
    const check = await findEndpointCheck(pool, target.id)
    if (check === null || check.queuedMs === null) return
    await Bun.sleep(POLL_MS)
  }
}

/**
 * Waits until a running check of a seller's endpoint has ended, or the time is over. The field `isOurs` is true if the
 * check still runs. The current HTTP request may then come from the seller's server, because the check is calling this
 * server.
 */
async function waitForCheck(
  pool: Services['pool'],
  id: string,
): Promise<{ check: EndpointCheck; isOurs: boolean }> {
  let runningSinceMs: number | null = null
  for (;;) {
    const check = await findEndpointCheck(pool, id)
    if (check === null)
      throw badRequest('resource must match a registered, active endpoint of the project')
    if (check.queuedMs === null) return { check, isOurs: false }
    if (check.isRunning) {
      runningSinceMs ??= performance.now()
      if (performance.now() - runningSinceMs > RUNNING_WAIT_MS) return { check, isOurs: true }
    } else if (check.queuedMs > WAIT_MS) {
      return { check, isOurs: false }
    }
    await Bun.sleep(POLL_MS)
  }
}
