import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import { type MtaStsPolicy, policyIdOf } from '../../../../shared/mail/mtaSts.ts'
import type { Pool } from '../../../../sql/db.ts'
import {
  findMtaStsPolicy,
  storeMtaStsPolicy,
} from '../../../../sql/mail/outbound/mtaStsPolicies.ts'
import { guardedExchange, type OutboundPolicy } from '../../../http/guardedRequest.ts'
import type { Dns } from '../../dns.ts'

/**
 * Finds the MTA-STS policy of a domain to which mail is sent. Returns `null` if the domain has no MTA-STS policy, or if
 * the DNS or the web site of the domain fails.
 */
export type FindPolicy = (domain: string) => Promise<MtaStsPolicy | null>

/** Holds the settings with which the service fetches an MTA-STS policy. */
type FetchOptions = OutboundPolicy & {
  /**
   * Sets the port of the web site that serves the MTA-STS policy, 443 by default. Only tests set another port.
   */
  port?: number
  /** Adds certificate authorities in PEM form for fetching an MTA-STS policy. */
  ca?: string
}

export type MtaStsOptions = FetchOptions & {
  pool: Pool
  dns: Pick<Dns, 'txt'>
  log: Pick<Logger, 'info'>
}

const FETCH_TIMEOUT_MS = 10_000
/**
 * Matches the name of a mail host in an MTA-STS policy (RFC 8461 §3.2). The service leaves out other names, because
 * PostgreSQL would refuse a text such as a NUL byte, and the mail to the domain could then not be delivered.
 */
const MX_PATTERN = /^(\*\.)?[a-z0-9.-]{1,253}$/i
const POLICY_MAX_BYTES = 16 * 1024
/**
 * The following constants limit the lifetime of an MTA-STS policy, in seconds. RFC 8461 §3.2 allows a lifetime of at
 * most a year. If the lifetime were shorter than an hour, the policy would be fetched for each mail.
 */
const MAX_AGE_S = { least: 3_600, most: 31_557_600 }
/** Sets the milliseconds within which a process looks up the MTA-STS record of a domain at most once. */
const ASKED_MS = 60_000
const DOMAINS_MAX = 10_000

/**
 * Finds MTA-STS policies. An MTA-STS policy is kept in memory for a minute and in PostgreSQL until the policy expires.
 * A policy that is in neither place is fetched from the web site of the domain (RFC 8461 §3).
 */
export function createMtaSts(options: MtaStsOptions): FindPolicy {
  const known = new LRUCache<string, Promise<MtaStsPolicy | null>>({
    max: DOMAINS_MAX,
    ttl: ASKED_MS,
  })
  return (domain) => {
    const asked = known.get(domain) ?? find(domain, options)
    known.set(domain, asked, { noUpdateTTL: true })
    asked.catch(() => known.delete(domain))
    return asked
  }
}

async function find(domain: string, options: MtaStsOptions): Promise<MtaStsPolicy | null> {
  const { pool, dns, log } = options
  const stored = await findMtaStsPolicy(pool, domain)
  const id = policyIdOf(await dns.txt(`_mta-sts.${domain}`).catch(() => []))
  if (id === null || id === stored?.id) return stored
  const fetched = await fetchPolicy(domain, options)
  if ('fault' in fetched) {
    log.info({ domain, fault: fetched.fault }, 'the MTA-STS policy of a domain cannot be fetched')
    return stored
  }
  await storeMtaStsPolicy(pool, domain, { id, ...fetched })
  return fetched
}

/**
 * Fetches the MTA-STS policy from the web site of a domain. The text `fault` tells why there is no MTA-STS policy, and
 * contains no network address.
 */
export async function fetchPolicy(
  domain: string,
  { port, ca, ...outbound }: FetchOptions,
): Promise<(MtaStsPolicy & { maxAgeS: number }) | { fault: string }> {
  const host = `mta-sts.${domain}${port === undefined ? '' : `:${port}`}`
  const answer = await guardedExchange({
    url: `https://${host}/.well-known/mta-sts.txt`,
    method: 'GET',
    timeoutMs: FETCH_TIMEOUT_MS,
    responseBytesMax: POLICY_MAX_BYTES,
    allowPrivate: outbound.allowPrivate,
    ...(outbound.resolve === undefined ? {} : { resolve: outbound.resolve }),
    ...(ca === undefined ? {} : { ca }),
  })
  if (!answer.ok) return { fault: answer.detail }
  // The service follows no redirect when it fetches an MTA-STS policy (RFC 8461 §3.3).
  if (answer.status !== 200 || answer.truncated) return { fault: `status ${answer.status}` }
  try {
    const { parsePolicy } = await import('mailauth/lib/mta-sts')
    const { mode = 'none', mx = [], maxAge = 0 } = parsePolicy(answer.body)
    if (!mx.every((pattern) => MX_PATTERN.test(pattern))) return { fault: 'malformed' }
    const maxAgeS = Math.min(MAX_AGE_S.most, Math.max(MAX_AGE_S.least, maxAge))
    return { mode: mode as MtaStsPolicy['mode'], mx: [...mx], maxAgeS }
  } catch {
    return { fault: 'malformed' }
  }
}
