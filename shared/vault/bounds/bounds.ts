/**
 * Checks the bounds of a credential: its limits on use. The bounds are the allowed hosts, methods and paths of requests
 * with the secret, and the allowed places of the secret in these requests. Every operation that uses a secret checks
 * these bounds. If the list of any bound is empty, the credential allows no request.
 */

import { defaultPlacement, meetPlacements, PLACEMENT_MAX } from '../placement.ts'
import { ALLOWED_HOSTS_MAX, effectiveHosts, isAllowedHost, meetHosts } from './allowedHosts.ts'
import { ALLOWED_PATHS_MAX, ANY_PATH, isAllowedPath, meetPaths } from './allowedPaths.ts'
import { common, isWithin, type Meet } from './narrowing.ts'
import { USE_METHODS, type UseMethod } from './useMethods.ts'

export const BOUNDS = ['allowedHosts', 'allowedMethods', 'allowedPaths', 'placement'] as const

/**
 * Holds the stored bounds of a credential: hosts, methods, paths and places of its secret. A null bound means that the
 * default of the bound applies.
 */
export type Bounds = Record<(typeof BOUNDS)[number], readonly string[] | null>

/** Holds the bounds (limits on use) of a credential. The default of a bound stands in place of each null. */
export type EffectiveBounds = Record<(typeof BOUNDS)[number], readonly string[]>

type Bounded = Bounds & { type: string; metadata: Record<string, unknown> }

const MEET: Record<(typeof BOUNDS)[number], Meet> = {
  allowedHosts: meetHosts,
  allowedMethods: (one, other) => (one === other ? one : null),
  allowedPaths: meetPaths,
  placement: meetPlacements,
}

/** Sets the maximum number of list entries of each bound (limit on use) of a credential. */
const MOST: Record<(typeof BOUNDS)[number], number> = {
  allowedHosts: ALLOWED_HOSTS_MAX,
  allowedMethods: USE_METHODS.length,
  allowedPaths: ALLOWED_PATHS_MAX,
  placement: PLACEMENT_MAX,
}

/** Returns the bounds (limits on use) of a credential, with the default value of the bound in place of each null. */
export const effectiveBounds = (credential: Bounded): EffectiveBounds => ({
  allowedHosts: effectiveHosts(credential.allowedHosts, credential.metadata),
  allowedMethods: credential.allowedMethods ?? USE_METHODS,
  allowedPaths: credential.allowedPaths ?? [ANY_PATH],
  placement: credential.placement ?? defaultPlacement(credential.type),
})

/** Tells whether the bounds `present` of a credential allow every request that the bounds `wanted` allow. */
export const areWithin = (wanted: EffectiveBounds, present: EffectiveBounds): boolean =>
  BOUNDS.every((bound) => isWithin(MEET[bound], wanted[bound], present[bound]))

/** Returns bounds (limits on use) that allow only those requests which all given bounds allow. */
export function commonBounds(all: readonly EffectiveBounds[]): EffectiveBounds {
  return all.reduce((one, other) => {
    // The common part of two bounds (limits on use) may have more entries than a credential may hold. The function
    // drops the surplus entries, which can only make the bounds narrower.
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
 * Reports that a request violates a credential's bounds (limits on use). The `message` is the end of a sentence that
 * begins with the credential's name. It names the violated bound.
 */
export class OutOfBoundsError extends Error {}

/**
 * Checks the host, the method and the path of a request that the service sends or signs with a secret.
 * @param request.url is the URL in which the values have replaced the placeholders, because the function must check the
 * path that the service sends.
 * @throws {OutOfBoundsError} if the bounds forbid the request.
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
