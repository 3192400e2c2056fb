/** Judges whether other mail hosts accept mail from this service. */
import { isIP } from 'node:net'
import { type Finding, findingsIn, shown } from './finding.ts'
import type { Reached } from './mailInFindings.ts'
import {
  addressRecord,
  dmarcRecord,
  ptrRecord,
  spfRecord,
  txtRecord,
  type ZoneSettings,
  zoneLine,
} from './zone.ts'

const { ok, warning, broken } = findingsIn('mail out')

const RELAY_FIX = 'SMTP_RELAY_URL=smtp://USER:PASSWORD@RELAY:587'

/** Makes the finding of the doctor (the service's self-check) about connections to port 25 of large mail providers. */
export function judgePort25(hosts: readonly { host: string; reached: Reached }[]): Finding {
  const check = 'port 25 outward'
  const answered = hosts.filter(({ reached }) => reached === 'answered')
  if (answered.length > 0) return ok(check, `${answered[0]!.host} answers`)
  if (hosts.every(({ reached }) => reached === 'silent')) {
    // If hosts do not respond at all, the cloud provider drops packets to port 25. A firewall of the operator would
    // usually refuse the connection instead.
    return broken(
      check,
      'no host answers, and none refuses: the provider shuts the port; ask it to open the port, or use a relay',
      RELAY_FIX,
    )
  }
  if (hosts.every(({ reached }) => reached === 'refused')) {
    return broken(
      check,
      'every host is refused at once: a firewall near this machine shuts the port',
      'nft list ruleset   # let tcp dport 25 out',
    )
  }
  return broken(check, 'no host answers; the network of this machine has a fault', RELAY_FIX)
}

/**
 * Tells whether a reverse DNS name looks like the default name of a hosting provider. A provider's default name
 * contains each group of digits of the IP address, perhaps with leading zeros.
 */
const isGeneric = (name: string, address: string): boolean => {
  const groups = address.split(/[.:]/).filter((group) => group !== '')
  const isIpv6 = address.includes(':')
  const numbers = (name.match(isIpv6 ? /[\da-f]+/g : /\d+/g) ?? []).map(withoutZeros)
  if (groups.length < 2) return false
  return groups.map(withoutZeros).every((group) => {
    const at = numbers.indexOf(group)
    if (at >= 0) numbers.splice(at, 1)
    return at >= 0
  })
}

const withoutZeros = (digits: string): string => digits.replace(/^0+(?=.)/, '')

/**
 * Makes the finding of the doctor (the self-check) about the reverse DNS name of an IP address from which the service
 * sends mail (FCrDNS). Large providers refuse mail from an address without a reverse name.
 * @param names lists the reverse names of the address. The field `forward` holds the IP addresses to which a reverse
 * name resolves.
 */
export function judgeReverse(
  address: string,
  mailHostname: string,
  names: readonly { name: string; forward: readonly string[] }[],
): Finding {
  const check = `reverse name of ${address}`
  const line = `${zoneLine(ptrRecord(address, mailHostname))}   ; ask the provider of the address`
  if (names.length === 0) return broken(check, 'it has none', line)
  const leadingBack = names.filter(({ forward }) => forward.includes(address))
  const [confirmed] = leadingBack
  if (confirmed === undefined) {
    return broken(check, `${shown(names[0]!.name)} does not lead back to ${address}`, line)
  }
  if (leadingBack.some(({ name }) => name === mailHostname)) return ok(check, mailHostname)
  if (isGeneric(confirmed.name, address)) {
    return warning(check, `${shown(confirmed.name)} is the provider's name`, line)
  }
  return warning(check, `${shown(confirmed.name)}, and EHLO says ${mailHostname}`, line)
}

/** Holds the result of an SPF check (RFC 7208 §2.6) for one address of this service. */
export type SpfResult = { address: string; result: string; comment: string }

/**
 * Makes the finding of the doctor (the service's self-check) about the SPF record of a domain.
 * @param records lists the domain's TXT records that begin with v=spf1.
 * @param isDirect tells whether the service itself sends from the given addresses. If it sends through a mail relay,
 * only the operator of the relay can list the sending addresses.
 */
export function judgeSpf({
  domain,
  records,
  results,
  isDirect,
  settings,
}: {
  domain: string
  records: readonly string[]
  results: readonly SpfResult[]
  isDirect: boolean
  settings: ZoneSettings
}): Finding {
  const check = `SPF of ${domain}`
  const wanted = spfRecord(domain, settings)
  const fix = zoneLine(wanted)
  if (records.length === 0) return broken(check, 'no such record', fix)
  // If a domain has two SPF records, every receiver reports an error (RFC 7208 §4.5).
  if (records.length > 1) return broken(check, `${records.length} records instead of one`, fix)
  if (results.length === 0) {
    return warning(check, 'no address is known that sends mail, so that nobody can check it', fix)
  }
  const error = results.find(({ result }) => result === 'permerror')
  if (error !== undefined) {
    return broken(check, `it cannot be read: ${shown(error.comment)}`, fix)
  }
  const unknown = results.find(({ result }) => result === 'temperror')
  if (unknown !== undefined) return warning(check, 'a name server did not answer', fix)
  const refused = results.find(({ result }) => result !== 'pass')
  if (refused === undefined) return ok(check, shown(records[0]!))
  const found = `it says ${refused.result} for ${refused.address}`
  return isDirect
    ? broken(check, found, fix)
    : warning(check, `${found}, the relay`, `${fix}   ; with the include that the relay names`)
}

const KEY_CHARS_1024 = 216

/**
 * Makes the finding of the doctor (the service's self-check) about the DNS record of a DKIM key. @param found lists the
 * TXT records that DNS returned for the DNS name of the DKIM key.
 */
export function judgeDkim(
  { domain, selector, record }: { domain: string; selector: string; record: string },
  found: readonly string[],
): Finding {
  const name = `${selector}._domainkey.${domain}`
  const check = `DKIM ${selector} of ${domain}`
  const fix = zoneLine(txtRecord(name, record))
  const keys = found.filter((text) => /(?:^|;)\s*p\s*=/i.test(text))
  if (keys.length === 0) return broken(check, 'no such record', fix)
  if (keys.length > 1) return broken(check, `${keys.length} records instead of one`, fix)
  const published = keys[0]!
  if (tagOf(published, 'p') !== tagOf(record, 'p')) {
    return broken(check, 'its key is not ours', fix)
  }
  if (tagOf(published, 'p').length < KEY_CHARS_1024) {
    return broken(check, 'the key is too short', `bun run dkim:new ${domain}`)
  }
  if (tagOf(published, 't').split(':').includes('y')) {
    return warning(check, 't=y says that the domain only tests', fix)
  }
  return ok(check, 'its key is ours')
}

/** Reports that no DKIM key signs the mail of a domain. */
export const missingDkim = (domain: string): Finding =>
  broken(`DKIM of ${domain}`, 'no key signs its mail', `bun run dkim:new ${domain}`)

/** Returns the value of one tag in a DKIM or DMARC record, without white space. */
export function tagOf(text: string, name: string): string {
  const tag = text.split(';').find((part) => part.split('=')[0]?.trim().toLowerCase() === name)
  return tag === undefined ? '' : tag.slice(tag.indexOf('=') + 1).replace(/\s+/g, '')
}

/**
 * Makes the finding of the doctor (the service's self-check) about the DMARC record of a domain (RFC 9989). The DKIM
 * signatures of a domain's mail name the domain itself, so these signatures are aligned in the sense of DMARC.
 * @param found holds the DMARC records of the domain, or of its nearest parent domain with such records, because DMARC
 * walks up the DNS tree. The field `at` is the DNS name of these records.
 * @param unconfirmed lists the hosts in the tag `rua` that do not confirm that they accept reports for the domain.
 */
export function judgeDmarc({
  domain,
  found,
  unconfirmed,
  mailDomain,
}: {
  domain: string
  found: { at: string; records: readonly string[] } | null
  unconfirmed: readonly string[]
  mailDomain: string
}): Finding {
  const check = `DMARC of ${domain}`
  const fix = zoneLine(dmarcRecord(domain, mailDomain))
  if (found === null) return broken(check, 'no such record', fix)
  if (found.records.length > 1) {
    return broken(check, `${found.records.length} records instead of one`, fix)
  }
  const record = found.records[0]!
  const isInherited = found.at !== domain
  // The tag `sp` is the policy for subdomains. Without `sp`, the policy `p` also applies to subdomains (RFC 9989 §4.7).
  const name = isInherited && tagOf(record, 'sp') !== '' ? 'sp' : 'p'
  const policy = tagOf(record, name).toLowerCase()
  if (policy !== '' && !['none', 'quarantine', 'reject'].includes(policy)) {
    return broken(check, `${name}=${shown(policy)} is no policy`, fix)
  }
  const [stranger] = unconfirmed
  if (stranger !== undefined) {
    return warning(
      check,
      `reports to ${shown(stranger)} are not sent: it does not take those of ${found.at}`,
      zoneLine(txtRecord(`${found.at}._report._dmarc.${stranger}`, 'v=DMARC1')),
    )
  }
  const old = ['pct', 'rf', 'ri'].find((tag) => tagOf(record, tag) !== '')
  if (old !== undefined) return warning(check, `${old}= has no meaning since RFC 9989`, fix)
  const inherited = isInherited ? `, by ${found.at}` : ''
  return ok(check, `${name}=${policy === '' ? 'none' : policy}${inherited}`)
}

/** Describes the state of the mail relay in one test connection. */
export type RelayFacts = {
  host: string
  login: 'accepted' | 'refused' | 'untrusted' | Exclude<Reached, 'answered'>
  /** Tells whether the connection to the mail relay is encrypted. */
  isEncrypted: boolean
  /**
   * Holds the size limit for mail in bytes that the relay announces (RFC 1870). Null means that the relay announces no
   * size limit.
   */
  sizeMax: number | null
}

/**
 * Makes the findings of the doctor (the service's self-check) about the mail relay. @param ourMax is the size in bytes
 * of the largest mail that the API accepts.
 */
export function judgeRelay(
  { host, login, isEncrypted, sizeMax }: RelayFacts,
  ourMax: number,
): Finding[] {
  const check = `relay ${host}`
  const fix = `SMTP_RELAY_URL=smtp://USER:PASSWORD@${isIP(host) === 6 ? `[${host}]` : host}:587`
  if (login === 'silent') {
    // The suggested settings line names port 587, because hosting providers such as Hetzner block the ports 25 and 465,
    // but not port 587.
    return [broken(check, 'no answer: the provider may shut the port', fix)]
  }
  if (login === 'refused') {
    return [broken(check, 'it refuses the login', fix)]
  }
  if (login === 'untrusted') {
    return [
      broken(
        check,
        'it offers no TLS that can be trusted',
        'SMTP_RELAY_CA_FILE=/etc/purser/relay.pem',
      ),
    ]
  }
  if (login === 'unreachable') {
    return [broken(check, 'nothing answers there', RELAY_FIX)]
  }
  return [
    ok(check, 'it takes our login'),
    isEncrypted
      ? ok('TLS of the relay', 'mail goes out encrypted')
      : warning('TLS of the relay', 'mail goes out readable', 'SMTP_RELAY_TLS=required'),
    sizeMax !== null && sizeMax > 0 && sizeMax < ourMax
      ? warning(
          'size of the relay',
          `it takes ${megabytes(sizeMax)} MB, and the API ${megabytes(ourMax)} MB`,
          `${RELAY_FIX}   # one that takes ${megabytes(ourMax)} MB`,
        )
      : ok('size of the relay', sizeMax === null ? 'no limit is told' : `${megabytes(sizeMax)} MB`),
  ]
}

const megabytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0)

/**
 * Judges whether the host name in EHLO resolves to the IP address from which the service sends mail (RFC 5321 §4.1.4).
 */
export const judgeEhlo = (
  address: string,
  mailHostname: string,
  addresses: readonly string[],
): Finding =>
  addresses.includes(address)
    ? ok('name in EHLO', `${mailHostname} leads to ${address}`)
    : warning(
        'name in EHLO',
        `${mailHostname} does not lead to ${address}`,
        zoneLine(addressRecord(mailHostname, address)),
      )
