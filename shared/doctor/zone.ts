/** Makes the DNS records that the service needs, and the lines of these records in a zone file (RFC 1035 §5). */
import { isIP } from 'node:net'
import { txtStrings } from '../mail/compose/dkim.ts'
import { type DomainClaim, domainRecords } from '../mail/mailDomain.ts'
import { type MtaStsMode, policyText } from '../mail/mtaSts.ts'

export type ZoneRecord = {
  /** Holds the name of the DNS record, without the final dot. */
  name: string
  type: 'A' | 'AAAA' | 'CNAME' | 'MX' | 'PTR' | 'TXT'
  /**
   * Holds the value of the DNS record in the form of a resolver's response. The value of an MX record begins with the
   * preference.
   */
  value: string
}

/** Holds the host names and settings for the DNS records. */
export type ZoneSettings = {
  mailDomain: string
  mailHostname: string
  /** Holds the host name in BASE_URL. */
  webHost: string
  /** Tells how the service sends mail: `capture`, `direct` or the URL of a smarthost. */
  relayUrl: string
  mtaSts: MtaStsMode
}

/** Writes one line of a zone file. */
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

/**
 * Makes the SPF record of a domain. The SPF record of MAIL_DOMAIN lists the hosts that send mail. The SPF records of
 * other domains include the SPF record of MAIL_DOMAIN.
 */
export function spfRecord(domain: string, { mailDomain, ...settings }: ZoneSettings): ZoneRecord {
  if (domain !== mailDomain) return txtRecord(domain, `v=spf1 include:${mailDomain} ~all`)
  const relay = relayInclude(settings.relayUrl)
  const hosts = [`a:${settings.mailHostname}`, ...(relay === null ? [] : [`include:${relay}`])]
  return txtRecord(domain, `v=spf1 ${hosts.join(' ')} ~all`)
}

/**
 * Makes the SPF record of the host name in EHLO. Receivers check this SPF record for a mail without an envelope sender
 * (RFC 7208 §2.3).
 */
const ehloSpfRecord = (mailHostname: string): ZoneRecord => txtRecord(mailHostname, 'v=spf1 a -all')

/**
 * Maps the hosts of well-known relays to the SPF name that lists the addresses of the relay. The documentation of each
 * relay gives the relay's SPF name.
 */
const RELAY_INCLUDES: readonly [host: RegExp, include: string][] = [
  [/(?:^|\.)amazonaws\.com$/, 'amazonses.com'],
  [/(?:^|\.)mailgun\.org$/, 'mailgun.org'],
  [/(?:^|\.)postmarkapp\.com$/, 'spf.mtasv.net'],
  [/(?:^|\.)sendgrid\.net$/, 'sendgrid.net'],
]

/**
 * Returns the SPF name that the SPF record must include for a mail relay. @returns null if the service uses no relay,
 * or if the relay is not well known.
 */
function relayInclude(relayUrl: string): string | null {
  const host = relayHost(relayUrl)
  if (host === null) return null
  return RELAY_INCLUDES.find(([form]) => form.test(host))?.[1] ?? null
}

/** Returns the host name of the smarthost. @returns null if the service uses no smarthost. */
export const relayHost = (relayUrl: string): string | null =>
  URL.canParse(relayUrl) ? new URL(relayUrl).hostname.replace(/^\[|\]$/g, '').toLowerCase() : null

export const dmarcRecord = (domain: string, mailDomain: string): ZoneRecord =>
  txtRecord(
    `_dmarc.${domain}`,
    `v=DMARC1; p=none${domain === mailDomain ? `; rua=mailto:dmarc@${mailDomain}` : ''}`,
  )

/**
 * Makes the MTA-STS policy of the service's domains. Operators begin with the MTA-STS mode `testing`, because a week of
 * reports shows which senders would lose mail.
 */
export const ownPolicy = ({
  mtaSts,
  mailHostname,
}: Pick<ZoneSettings, 'mtaSts' | 'mailHostname'>): string =>
  policyText({ mode: mtaSts === 'none' ? 'testing' : mtaSts, mx: [mailHostname] })

/**
 * Makes the TXT record of MTA-STS. @param id is the id of the MTA-STS policy: 1 to 32 letters or digits. The id must
 * change whenever the MTA-STS policy changes.
 */
export const stsRecord = (domain: string, id: string): ZoneRecord =>
  txtRecord(`_mta-sts.${domain}`, `v=STSv1; id=${id}`)

export const tlsReportRecord = (domain: string, mailDomain: string): ZoneRecord =>
  txtRecord(`_smtp._tls.${domain}`, `v=TLSRPTv1; rua=mailto:tlsrpt@${mailDomain}`)

/** Returns the DNS name of the PTR record for an IP address (RFC 1035 §3.5, RFC 3596 §2.5). */
export function reverseName(address: string): string {
  if (isIP(address) !== 6) return `${address.split('.').toReversed().join('.')}.in-addr.arpa`
  const digits = wholeIpv6(address).join('')
  return `${[...digits].toReversed().join('.')}.ip6.arpa`
}

/** Returns the eight groups of an IPv6 address, each with four hexadecimal digits. */
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

/**
 * Describes a domain of the service with its DKIM keys. The field `claim` describes how a tenant proves the ownership
 * of the domain.
 */
export type ServedDomain = {
  domain: string
  dkim: readonly { selector: string; record: string }[]
  claim: DomainClaim | null
}

/**
 * Lists the DNS records that a domain of the service needs: first for its ownership, then for inbound mail, outbound
 * mail and reports.
 */
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
