import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A report on the health of the service: its findings, each with the line to change. */
export type HealthReport = Operations['getPlatformHealth']['result']

/**
 * The reports on the health of a service.
 * @example
 * const { verdict, findings } = await platform.health.get()
 * console.log(verdict, findings.filter((finding) => finding.verdict === 'broken'))
 */
export function health(http: Http) {
  return {
    /** The last report. Fails with NotFoundError before the first one. */
    get: (options?: CallOptions) => http.call('getPlatformHealth', {}, options),
    /** Has the workers look again; the answer takes some seconds. */
    lookAgain: (options?: CallOptions) => http.call('postPlatformHealth', {}, options),
  }
}
