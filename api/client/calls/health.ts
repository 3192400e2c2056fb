import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/**
 * Describes a report on the health of the service. A health report holds findings, and each finding names the
 * configuration line that the operator must change.
 */
export type HealthReport = Operations['getPlatformHealth']['result']

/**
 * Reads the reports on the health of a service.
 * @example
 * const { verdict, findings } = await platform.health.get()
 * console.log(verdict, findings.filter((finding) => finding.verdict === 'broken'))
 */
export function health(http: Http) {
  return {
    /** Returns the last health report. Fails with NotFoundError if the service has made no health report yet. */
    get: (options?: CallOptions) => http.call('getPlatformHealth', {}, options),
    /** Makes the workers check the health of the service again. The call takes some seconds. */
    lookAgain: (options?: CallOptions) => http.call('postPlatformHealth', {}, options),
  }
}
