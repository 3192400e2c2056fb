import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** Describes a report on the health of the service. The report holds findings, each with the line to change. */
export type HealthReport = Operations['getPlatformHealth']['result']

/**
 * Reads the reports on the health of a service.
 * @example
 * const { verdict, findings } = await platform.health.get()
 * console.log(verdict, findings.filter((finding) => finding.verdict === 'broken'))
 */
export function health(http: Http) {
  return {
    /** Returns the last health report. Fails with NotFoundError before the first report. */
    get: (options?: CallOptions) => http.call('getPlatformHealth', {}, options),
    /** Makes the workers examine the service again. The response takes some seconds. */
    lookAgain: (options?: CallOptions) => http.call('postPlatformHealth', {}, options),
  }
}
