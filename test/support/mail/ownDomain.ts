/** Adds mail domains to projects, with records in a DNS that the test controls. */

import type { TestService } from '../service.ts'
import { waitFor } from '../waitFor.ts'
import type { Zone } from './fakeDns.ts'

type DnsRecord = { type: string; name: string; value: string; priority: number | null }

/** Publishes the DNS records that a mail domain needs. */
export function publish(zone: Zone, records: readonly DnsRecord[]): void {
  zone.mx ??= {}
  zone.txt ??= {}
  for (const { type, name, value, priority } of records) {
    if (type === 'MX') zone.mx[name] = [[priority ?? 0, value]]
    else zone.txt[name] = [...(zone.txt[name] ?? []), value]
  }
}

/** Adds a mail domain and waits until it is verified. */
export async function addVerifiedDomain(
  { platform }: TestService,
  zone: Zone,
  domain: string,
): Promise<void> {
  const path = `/v0/platform/domains/${domain}`
  const { body } = await platform.post('/v0/platform/domains', { domain })
  publish(zone, body.records)
  await waitFor(`${domain} to be verified`, async () => {
    // A DNS check that is already running has not seen the new records, and the next regular check would come only
    // after a minute. Therefore the test requests a new check.
    await platform.post(`${path}/verify`)
    return (await platform.get(path)).body.status === 'verified'
  })
}
