import type { Config } from '../../../shared/config/config.ts'
import { type Area, type Finding, findingsIn } from '../../../shared/doctor/finding.ts'
import { errorCode } from '../../../shared/errorCode.ts'
import { isVersioned } from '../../../shared/mail/versionedText.ts'
import type { Pool } from '../../../sql/db.ts'
import type { Resolve } from '../../http/guardedRequest.ts'
import { createDns, type Dns, isNoRecord } from '../../mail/dns.ts'
import { createLookUp, type LookUp } from '../../mail/lookUp.ts'

/** Holds the settings and connections that all checks of the doctor (the self-check) share. */
export type DoctorTools = {
  config: Config
  /**
   * Holds the connection pool of the database. A `pool` of `null` means that the database does not answer. The text
   * `reason` explains in one line why the database does not answer, and contains no secret.
   */
  database: { pool: Pool } | { pool: null; reason: string }
  dns: Dns
  lookUp: LookUp
  /** Names the ports that the doctor (the self-check) examines. Only tests set other ports. */
  ports: { smtp: number; https: number }
  /**
   * Resolves the host names of HTTPS requests, and holds certificate authorities in PEM form. Only tests set `resolve`
   * and `ca`.
   */
  resolve?: Resolve
  ca?: string
}

/** Sets two ports: the port to which strangers send mail, and the port that serves MTA-STS policies. */
export const PUBLIC_PORTS = { smtp: 25, https: 443 } as const

/**
 * Creates the DNS lookups for one report of the doctor (the self-check). Each report makes new DNS lookups, so that it
 * sees DNS changes since the last report.
 */
export function freshDns({ dnsServers }: Config): Pick<DoctorTools, 'dns' | 'lookUp'> {
  const dns = createDns(dnsServers.length > 0 ? dnsServers : undefined)
  return { dns, lookUp: createLookUp(dns, dnsServers) }
}

/** Limits the milliseconds of one check of the doctor (the self-check). */
export const LOOK_MS = 5_000

class LateError extends Error {
  constructor() {
    super(`no answer within ${LOOK_MS / 1000} s`)
  }
}

/**
 * Waits for the work of one check of the doctor (the self-check), but only up to the time limit.
 * @throws {LateError} after the time limit.
 */
export async function inTime<Result>(work: Promise<Result>): Promise<Result> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new LateError()), LOOK_MS)
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Describes one check of the doctor (the self-check). If the check fails with an error, the report shows the name of
 * the check, which is `check`.
 */
export type Look = { check: string; run: () => Promise<Finding | readonly Finding[]> }

/**
 * Runs all checks of one area of the doctor's report (the result of the self-check) at the same time. A failed check
 * does not hide the findings of the other checks.
 */
export async function takeLooks(area: Area, looks: readonly Look[]): Promise<Finding[]> {
  const results = await Promise.all(
    looks.map(async ({ check, run }) => {
      try {
        return await run()
      } catch (error) {
        return findingsIn(area).warning(check, `the look failed: ${reasonOf(error)}`)
      }
    }),
  )
  return results.flat()
}

/**
 * Returns the reason why a check of the doctor (the self-check) failed. The reason is the message of a LateError, or
 * the code of any other error, because the message of another error could quote a URL with a secret.
 */
const reasonOf = (error: unknown): string => {
  if (error instanceof LateError) return error.message
  return errorCode(error) || 'an error of the look'
}

/**
 * Returns the DNS records of a name. The list is empty if the name has no DNS records. @throws if the name servers fail
 * or do not answer.
 */
export async function recordsAt(lookUp: LookUp, name: string, type: string): Promise<unknown[]> {
  try {
    return (await inTime(Promise.resolve(lookUp(name, type)))) as unknown[]
  } catch (error) {
    if (isNoRecord(error)) return []
    throw error
  }
}

/** Returns those TXT records of a name that begin with `v=VERSION`. */
export async function versionedTexts(dns: Dns, name: string, version: string): Promise<string[]> {
  return (await inTime(dns.txt(name))).filter((text) => isVersioned(text, version))
}
