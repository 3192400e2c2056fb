import type { Config } from '../../../shared/config/config.ts'
import type { ServedDomain, ZoneSettings } from '../../../shared/doctor/zone.ts'
import { ownPolicy } from '../../../shared/doctor/zone.ts'
import type { DomainStatus } from '../../../shared/mail/mailDomain.ts'
import type { Pool } from '../../../sql/db.ts'
import { listDkimKeys } from '../../../sql/mail/domains/dkimKeys.ts'
import { listServedDomains } from '../../../sql/mail/domains/mailDomains.ts'

/**
 * Limits how many mail domains one report of the doctor (the self-check) covers, because a tenant with thousands of
 * domains must not slow down each report.
 */
export const DOMAINS_MAX = 50

/**
 * Lists MAIL_DOMAIN first, then the mail domains in the database that have one of the given states, each domain with
 * its DKIM keys.
 */
export async function servedDomains(
  { mailDomain }: Pick<Config, 'mailDomain'>,
  pool: Pool | null,
  { states, limit }: { states: readonly DomainStatus[]; limit: number },
): Promise<ServedDomain[]> {
  if (pool === null) return [{ domain: mailDomain, dkim: [], claim: null }]
  const claims = await listServedDomains(pool, { states, limit })
  const served: ServedDomain[] = [
    { domain: mailDomain, dkim: await listDkimKeys(pool, mailDomain), claim: null },
  ]
  for (const claim of claims) {
    served.push({ domain: claim.domain, dkim: await listDkimKeys(pool, claim.domain), claim })
  }
  return served
}

export const zoneSettings = ({
  mailDomain,
  mailHostname,
  relayUrl,
  mtaSts,
  http,
}: Pick<Config, 'mailDomain' | 'mailHostname' | 'relayUrl' | 'mtaSts' | 'http'>): ZoneSettings => ({
  mailDomain,
  mailHostname,
  relayUrl,
  mtaSts,
  webHost: new URL(http.baseUrl).hostname.replace(/^\[|\]$/g, ''),
})

const ID_CHARS = 20

/** Returns the id of this service's MTA-STS policy. The id changes whenever the policy changes (RFC 8461 §3.1). */
export const stsIdOf = (settings: Pick<ZoneSettings, 'mtaSts' | 'mailHostname'>): string =>
  new Bun.CryptoHasher('sha256').update(ownPolicy(settings)).digest('hex').slice(0, ID_CHARS)
