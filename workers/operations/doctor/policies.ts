import type { Finding } from '../../../shared/doctor/finding.ts'
import { dnsAway } from '../../../shared/doctor/mailInFindings.ts'
import {
  type CaaRecord,
  judgeCaa,
  judgeSts,
  judgeTlsReports,
  type SeenPolicy,
} from '../../../shared/doctor/policyFindings.ts'
import type { ServedDomain } from '../../../shared/doctor/zone.ts'
import { allowsHost } from '../../../shared/mail/mtaSts.ts'
import { fetchPolicy } from '../../mail/outbound/direct/mtaSts.ts'
import {
  type DoctorTools,
  inTime,
  PUBLIC_PORTS,
  recordsAt,
  takeLooks,
  versionedTexts,
} from './look.ts'
import { stsIdOf } from './served.ts'

/**
 * Examines MTA-STS, TLS reports, and the certificate authorities that the CAA records allow.
 * @param issuers names the certificate authorities that issued the certificates of BASE_URL and of the SMTP listener.
 * An empty name means an unknown certificate authority.
 */
export async function lookAtPolicies(
  tools: DoctorTools,
  served: readonly ServedDomain[],
  issuers: Record<'web' | 'mail', Promise<string>>,
): Promise<Finding[]> {
  const { config } = tools
  const webHost = new URL(config.http.baseUrl).hostname
  const hosts = [...new Set([webHost, config.mailHostname])].filter((host) =>
    /\.[a-z-]+$/.test(host),
  )
  return takeLooks('policies', [
    ...served.flatMap(({ domain }) => [
      { check: `MTA-STS of ${domain}`, run: () => stsOf(tools, domain) },
      {
        check: `TLS-RPT of ${domain}`,
        run: async () => {
          const name = `_smtp._tls.${domain}`
          const records = await versionedTexts(tools.dns, name, 'TLSRPTv1').catch(() => null)
          return records === null
            ? dnsAway('policies', `TLS-RPT of ${domain}`)
            : judgeTlsReports(domain, records, config.mailDomain)
        },
      },
    ]),
    ...hosts.map((host) => ({
      check: `CAA of ${host}`,
      run: async () => caaOf(tools, host, await issuers[host === webHost ? 'web' : 'mail']),
    })),
  ])
}

async function stsOf(tools: DoctorTools, domain: string): Promise<Finding[]> {
  const { dns, config } = tools
  const records = await versionedTexts(dns, `_mta-sts.${domain}`, 'STSv1').catch(() => null)
  if (records === null) return [dnsAway('policies', `MTA-STS of ${domain}`)]
  const policy = records.length === 1 ? await policyOf(tools, domain) : null
  return judgeSts({ domain, records, policy, settings: config, stsId: stsIdOf(config) })
}

async function policyOf(tools: DoctorTools, domain: string): Promise<SeenPolicy> {
  const { config, ports, resolve, ca } = tools
  const policy = await inTime(
    fetchPolicy(domain, {
      allowPrivate: config.allowPrivateNetworks,
      ...(ports.https === PUBLIC_PORTS.https ? {} : { port: ports.https }),
      ...(resolve === undefined ? {} : { resolve }),
      ...(ca === undefined ? {} : { ca }),
    }),
  )
  if ('fault' in policy) return { failure: `it cannot be fetched: ${policy.fault}` }
  return { ...policy, coversUs: allowsHost(policy, config.mailHostname) }
}

/**
 * Judges the CAA records that apply to a host name. They are the records of the host name itself, or else of its
 * nearest parent domain with CAA records (RFC 8659 §3).
 */
async function caaOf({ lookUp }: DoctorTools, host: string, issuer: string): Promise<Finding> {
  const labels = host.split('.')
  const names = labels.map((_, n) => labels.slice(n).join('.')).slice(0, -1)
  const found = await Promise.all(
    names.map(async (at) => ({ at, records: (await recordsAt(lookUp, at, 'CAA')) as object[] })),
  ).catch(() => null)
  if (found === null) return dnsAway('policies', `CAA of ${host}`)
  const first = found.find(({ records }) => records.length > 0)
  const set =
    first === undefined ? null : { at: first.at, records: first.records.flatMap(caaRecords) }
  return judgeCaa(host, set, issuer)
}

const TAGS = ['issue', 'issuewild'] as const

/**
 * Returns the CAA records in a result of the DNS resolver. The resolver returns each CAA record as an object with a
 * field that is named after the tag of the record.
 */
const caaRecords = (record: object): CaaRecord[] =>
  TAGS.flatMap((tag) => {
    const value = (record as Record<string, unknown>)[tag]
    return typeof value === 'string' ? [{ tag, value }] : []
  })
