import { isIP } from 'node:net'
import type { GuardedOutcome } from '../../../shared/doctor/webFindings.ts'
import { isPublicAddress } from '../../../shared/http/publicAddress.ts'
import { guardedExchange, headerOf } from '../../http/guardedRequest.ts'
import { type DoctorTools, LOOK_MS } from './look.ts'

/**
 * Describes the response of OUTSIDE_URL. The page at this URL tells the address of its caller, as Cloudflare's
 * `cdn-cgi/trace` does.
 */
export type Outside = {
  outcome: GuardedOutcome
  /**
   * Holds the address of this service as OUTSIDE_URL sees it. The address is `null` if the page at OUTSIDE_URL does not
   * tell the address of its caller.
   */
  address: string | null
  /**
   * Holds how many milliseconds the clock of this machine is ahead of the clock of OUTSIDE_URL. The difference is
   * `null` if the page at OUTSIDE_URL does not tell its time.
   */
  aheadMs: number | null
}

/** Requests OUTSIDE_URL through the HTTP client that webhooks use. */
export async function askOutside({ config, resolve, ca }: DoctorTools): Promise<Outside> {
  const answer = await guardedExchange({
    url: config.outsideUrl,
    method: 'GET',
    timeoutMs: LOOK_MS,
    allowPrivate: config.allowPrivateNetworks,
    ...(resolve === undefined ? {} : { resolve }),
    ...(ca === undefined ? {} : { ca }),
  })
  if (!answer.ok) {
    const outcome = answer.kind === 'blocked' ? 'blocked' : { failure: answer.detail }
    return { outcome, address: null, aheadMs: null }
  }
  return {
    outcome: 'answered',
    address: /^ip=(\S{1,45})$/m.exec(answer.body.toString('latin1'))?.[1] ?? null,
    aheadMs: aheadOf(answer.headers),
  }
}

/**
 * Corrects the time in a Date header. The header leaves out fractions of a second, so on average its time is half a
 * second behind the server's clock.
 */
const HEADER_CUT_MS = 500

function aheadOf(headers: readonly string[]): number | null {
  const told = Date.parse(headerOf(headers, 'date') ?? '')
  return Number.isNaN(told) ? null : Date.now() - told - HEADER_CUT_MS
}

/**
 * Returns the public addresses of this service as OUTSIDE_URL sees them. If the page at OUTSIDE_URL is unreachable,
 * returns the addresses of MAIL_HOSTNAME.
 */
export async function sendingAddresses(tools: DoctorTools, outside: Outside): Promise<string[]> {
  const seen = outside.address
  if (seen !== null && isIP(seen) > 0) return [seen]
  const named = await tools.dns.addresses(tools.config.mailHostname)
  return named.filter((address) => tools.config.allowPrivateNetworks || isPublicAddress(address))
}
