/** The DNS records that the service needs, and their lines in a zone file (RFC 1035 §5). */
import { isIP } from 'node:net'
import { txtStrings } from '../mail/compose/dkim.ts'
import { type DomainClaim, domainRecords } from '../mail/mailDomain.ts'
import { type MtaStsMode, policyText } from '../mail/mtaSts.ts'

export type ZoneRecord = {
  /** Without the final dot. */
  name: string
  type: 'A' | 'AAAA' | 'CNAME' | 'MX' | 'PTR' | 'TXT'
  /** As a resolver returns it; an MX record begins with its preference. */
  value: string
}

/** The names that the records are made of. */
export type ZoneSettings = {
  mailDomain: string
  mailHostname: string
  /** The host of BASE_URL. */
  webHost: string
  /** `capture`, `direct` or the URL of a smarthost. */
  relayUrl: string
  mtaSts: MtaStsMode
}

/** One line of a zone file. */
export function zoneLine({ name, type, value }: ZoneRecord): string {
  const written = type === 'TXT' ? txtStrings(value) : value
  const isName = type === 'CNAME' || type === 'MX' || type === 'PTR'
  return `${name}. IN ${type} ${written}${isName ? '.' : ''}`
}

export const mxRecord = (domain: string, mailHostname: string): ZoneRecord => ({
  name: domain,
  type: 'MX',
  value: `10 ${mailHostname}`,
})

export const addressRecord = (name: string, address: string): ZoneRecord => ({
  name,
  type: isIP(address) === 6 ? 'AAAA' : 'A',
  value: address,
})

export const txtRecord = (name: string, value: string): ZoneRecord => ({ name, type: 'TXT', value })

/** The SPF record of a domain. That of MAIL_DOMAIN lists the hosts that send; other domains include it. */
export function spfRecord(domain: string, { mailDomain, ...settings }: ZoneSettings): ZoneRecord {
  if (domain !== mailDomain) return txtRecord(domain, `v=spf1 include:${mailDomain} ~all`)
  const relay = relayInclude(settings.relayUrl)
  const hosts = [`a:${settings.mailHostname}`, ...(relay === null ? [] : [`include:${relay}`])]
  return txtRecord(domain, `v=spf1 ${hosts.join(' ')} ~all`)
}

/** RFC 7208 §2.3: mail without a sender is judged by the name in EHLO. */
const ehloSpfRecord = (mailHostname: string): ZoneRecord => txtRecord(mailHostname, 'v=spf1 a -all')

/** The name that lists the addresses of well-known relays; their own pages name it. */
const RELAY_INCLUDES: readonly [host: RegExp, include: string][] = [
  [/(?:^|\.)amazonaws\.com$/, 'amazonses.com'],
  [/(?:^|\.)mailgun\.org$/, 'mailgun.org'],
  [/(?:^|\.)postmarkapp\.com$/, 'spf.mtasv.net'],
  [/(?:^|\.)sendgrid\.net$/, 'sendgrid.net'],
]

/** The name to include for a relay; null: no relay, or one that is not known. */
function relayInclude(relayUrl: string): string | null {
  const host = relayHost(relayUrl)
  if (host === null) return null
  return RELAY_INCLUDES.find(([form]) => form.test(host))?.[1] ?? null
}

/** The host of the smarthost; null: there is none. */
export const relayHost = (relayUrl: string): string | null =>
  URL.canParse(relayUrl) ? new URL(relayUrl).hostname.replace(/^\[|\]$/g, '') : null

export const dmarcRecord = (domain: string, mailDomain: string): ZoneRecord =>
  txtRecord(
    `_dmarc.${domain}`,
    `v=DMARC1; p=none${domain === mailDomain ? `; rua=mailto:dmarc@${mailDomain}` : ''}`,
  )

/** The policy of our domains. `testing` comes first: a week of reports shows whose mail would be lost. */
export const ownPolicy = ({
  mtaSts,
  mailHostname,
}: Pick<ZoneSettings, 'mtaSts' | 'mailHostname'>): string =>
  policyText({ mode: mtaSts === 'none' ? 'testing' : mtaSts, mx: [mailHostname] })

/** @param id changes with the policy: 1 to 32 letters or digits. */
export const stsRecord = (domain: string, id: string): ZoneRecord =>
  txtRecord(`_mta-sts.${domain}`, `v=STSv1; id=${id}`)

export const tlsReportRecord = (domain: string, mailDomain: string): ZoneRecord =>
  txtRecord(`_smtp._tls.${domain}`, `v=TLSRPTv1; rua=mailto:tlsrpt@${mailDomain}`)

/** The name of an address in the reverse tree (RFC 1035 §3.5, RFC 3596 §2.5). */
export function reverseName(address: string): string {
  if (isIP(address) !== 6) return `${address.split('.').toReversed().join('.')}.in-addr.arpa`
  const digits = wholeIpv6(address).join('')
  return `${[...digits].toReversed().join('.')}.ip6.arpa`
}

/** Eight groups of four hexadecimal digits. */
function wholeIpv6(address: string): string[] {
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [before = '', after] = canonical.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [head, tail] = [groups(before), groups(after ?? '')]
  const zeros = Array<string>(8 - head.length - tail.length).fill('0')
  return [...head, ...zeros, ...tail].map((group) => group.padStart(4, '0'))
}

export const ptrRecord = (address: string, mailHostname: string): ZoneRecord => ({
  name: reverseName(address),
  type: 'PTR',
  value: mailHostname,
})

const policyHostRecord = (name: string, webHost: string): ZoneRecord =>
  isIP(webHost) === 0 ? { name, type: 'CNAME', value: webHost } : addressRecord(name, webHost)

/** A domain of the service with its DKIM keys. `claim`: how a tenant's domain proves its ownership. */
export type ServedDomain = {
  domain: string
  dkim: readonly { selector: string; record: string }[]
  claim: DomainClaim | null
}

/** The records of a domain, in the order in which an operator reads them. */
export function recordsOf(
  { domain, dkim, claim }: ServedDomain,
  settings: ZoneSettings,
  stsId: string,
): ZoneRecord[] {
  const { mailDomain, mailHostname, webHost, mtaSts } = settings
  const ownership = claim === null ? [] : domainRecords(claim, settings)
  return [
    ...ownership
      .filter(({ purpose }) => purpose === 'ownership')
      .map(({ name, value }) => txtRecord(name, value)),
    mxRecord(domain, mailHostname),
    spfRecord(domain, settings),
    ...(domain === mailDomain && mailHostname !== mailDomain ? [ehloSpfRecord(mailHostname)] : []),
    ...dkim.map(({ selector, record }) => txtRecord(`${selector}._domainkey.${domain}`, record)),
    dmarcRecord(domain, mailDomain),
    ...(mtaSts === 'none'
      ? []
      : [stsRecord(domain, stsId), policyHostRecord(`mta-sts.${domain}`, webHost)]),
    tlsReportRecord(domain, mailDomain),
  ]
}
