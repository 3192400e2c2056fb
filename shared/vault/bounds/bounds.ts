/**
 * Checks the bounds of a credential: the hosts, methods and paths of the requests that may carry its secret, and the
 * allowed places of the secret in these requests. Every operation that uses a secret makes these checks. If the list of
 * any bound of a credential is empty, the credential allows no request.
 */

import { defaultPlacement, meetPlacements, PLACEMENT_MAX } from '../placement.ts'
import { ALLOWED_HOSTS_MAX, effectiveHosts, isAllowedHost, meetHosts } from './allowedHosts.ts'
import { ALLOWED_PATHS_MAX, ANY_PATH, isAllowedPath, meetPaths } from './allowedPaths.ts'
import { common, isWithin, type Meet } from './narrowing.ts'
import { USE_METHODS, type UseMethod } from './useMethods.ts'

export const BOUNDS = ['allowedHosts', 'allowedMethods', 'allowedPaths', 'placement'] as const

/**
 * Holds the bounds of a credential (hosts, methods, paths and places of its secret) as they are stored. Null means that
 * the default of the bound applies.
 */
export type Bounds = Record<(typeof BOUNDS)[number], readonly string[] | null>

/** Holds the bounds of a credential after each null is replaced by the default of the bound. */
export type EffectiveBounds = Record<(typeof BOUNDS)[number], readonly string[]>

type Bounded = Bounds & { type: string; metadata: Record<string, unknown> }

const MEET: Record<(typeof BOUNDS)[number], Meet> = {
  allowedHosts: meetHosts,
  allowedMethods: (one, other) => (one === other ? one : null),
  allowedPaths: meetPaths,
  placement: meetPlacements,
}

/** Sets the maximum number of entries in the list of each bound (limit on use) of a credential. */
const MOST: Record<(typeof BOUNDS)[number], number> = {
  allowedHosts: ALLOWED_HOSTS_MAX,
  allowedMethods: USE_METHODS.length,
  allowedPaths: ALLOWED_PATHS_MAX,
  placement: PLACEMENT_MAX,
}

/**
 * Returns those bounds (limits on use) of a credential that apply to a request. If a bound (limit on use) is stored as
 * null, its default value is used.
 */
export const effectiveBounds = (credential: Bounded): EffectiveBounds => ({
  allowedHosts: effectiveHosts(credential.allowedHosts, credential.metadata),
  allowedMethods: credential.allowedMethods ?? USE_METHODS,
  allowedPaths: credential.allowedPaths ?? [ANY_PATH],
  placement: credential.placement ?? defaultPlacement(credential.type),
})

/** Tells whether the bounds `present` of a credential allow every request that the bounds `wanted` allow. */
export const areWithin = (wanted: EffectiveBounds, present: EffectiveBounds): boolean =>
  BOUNDS.every((bound) => isWithin(MEET[bound], wanted[bound], present[bound]))

/** Returns bounds that allow a request if and only if all the given bounds allow the request. */
export function commonBounds(all: readonly EffectiveBounds[]): EffectiveBounds {
  return all.reduce((one, other) => {
    // The two lists of bounds may have more entries in common than a credential may hold. The extra entries are
    // dropped, and this can only make the bounds (limits on use) narrower.
    const both = (bound: keyof Bounds) =>
      common(MEET[bound], one[bound], other[bound]).slice(0, MOST[bound])
    return {
      allowedHosts: both('allowedHosts'),
      allowedMethods: both('allowedMethods'),
      allowedPaths: both('allowedPaths'),
      placement: both('placement'),
    }
  })
}

/**
 * Reports that a request is outside of a credential's bounds. The error's `message` continues a sentence that begins
 * with the credential's name, and names the violated bound.
 */
export class OutOfBoundsError extends Error {}

/**
 * Checks host, method and path of a request that is sent or signed with a secret.
 * @param request.url is the URL after its placeholders are filled in, because the path is checked as it is sent.
 * @throws {OutOfBoundsError}
 */
export function checkBounds(
  bounds: EffectiveBounds,
  { method, url }: { method: UseMethod; url: string },
): void {
  const { host, pathname } = new URL(url)
  if (!isAllowedHost(bounds.allowedHosts, host)) {
    throw new OutOfBoundsError(`must not be used at ${host}: see its allowedHosts`)
  }
  if (!bounds.allowedMethods.includes(method)) {
    throw new OutOfBoundsError(`must not be used with ${method}: see its allowedMethods`)
  }
  if (!isAllowedPath(bounds.allowedPaths, pathname)) {
    throw new OutOfBoundsError('must not be used at this path: see its allowedPaths')
  }
}
