/** Judges whether the service can receive mail from anybody on the internet. */
import { isPublicAddress } from '../http/publicAddress.ts'
import { type Finding, findingsIn, shown } from './finding.ts'
import { addressRecord, mxRecord, zoneLine } from './zone.ts'

const { ok, warning, broken } = findingsIn('mail in')

const SILENT_DNS = 'the name servers did not answer'
const DNS_FIX = 'DNS_SERVERS=1.1.1.1,9.9.9.9'

/**
 * Reports that a DNS query got no response. Without a response, the doctor (the self-check) does not know whether the
 * DNS record exists.
 */
export const dnsAway = (area: Finding['area'], check: string): Finding =>
  findingsIn(area).warning(check, SILENT_DNS, DNS_FIX)

/** Makes the findings of the doctor (the service's self-check) about the MX records of a domain. */
export function judgeMx(
  domain: string,
  mailHostname: string,
  found: readonly { priority: number; exchange: string }[],
): Finding {
  const check = `MX of ${domain}`
  const fix = zoneLine(mxRecord(domain, mailHostname))
  if (found.length === 0) return broken(check, 'no such record', fix)
  const names = found.map(({ exchange }) => plain(exchange))
  if (names.length === 1 && names[0] === '') {
    return broken(check, 'a null MX: the domain takes no mail', fix)
  }
  const address = names.find((name) => /^[\d.]+$|:/.test(name))
  if (address !== undefined) {
    return broken(check, `${shown(address)} is an address, and must be a name`, fix)
  }
  const [own] = found
    .filter(({ exchange }) => plain(exchange) === plain(mailHostname))
    .toSorted((one, other) => one.priority - other.priority)
  if (own === undefined) {
    return broken(check, `${shown(names[0]!)} instead of ${mailHostname}`, fix)
  }
  const before = found.find(({ priority }) => priority < own.priority)
  if (before === undefined) return ok(check, `${own.priority} ${mailHostname}`)
  return warning(
    check,
    `${shown(plain(before.exchange))} gets the mail before ${mailHostname}`,
    fix,
  )
}

const plain = (name: string): string => name.toLowerCase().replace(/\.$/, '')

/**
 * Makes the findings of the doctor (the service's self-check) about the IP addresses of MAIL_HOSTNAME. @param
 * seenAddress is the IP address from which an outside host sees this service. Null means that this address is unknown.
 */
export function judgeMailHost({
  mailHostname,
  addresses,
  alias,
  seenAddress,
  allowPrivate,
}: {
  mailHostname: string
  addresses: readonly string[]
  /**
   * Holds the name to which a CNAME record of MAIL_HOSTNAME points. Null means that MAIL_HOSTNAME has no CNAME record.
   */
  alias: string | null
  seenAddress: string | null
  allowPrivate: boolean
}): Finding {
  const check = `address of ${mailHostname}`
  const fix =
    seenAddress === null
      ? `${mailHostname}. IN A …   ; the public address of this machine`
      : zoneLine(addressRecord(mailHostname, seenAddress))
  // An MX record must not name an alias (RFC 2181 §10.3).
  if (alias !== null)
    return broken(check, `it is an alias of ${shown(alias)}, which no MX may name`, fix)
  if (addresses.length === 0) return broken(check, 'it has none', fix)
  const inside = addresses.find((address) => !isPublicAddress(address))
  if (inside !== undefined) {
    const found = `${inside} is not public`
    return allowPrivate ? warning(check, found, fix) : broken(check, found, fix)
  }
  return ok(check, addresses.join(', '))
}

/** Describes the result of a connection to an SMTP server. */
export type Reached = 'answered' | 'refused' | 'silent' | 'unreachable'

const INBOUND_FIX = 'SMTP_HOST=0.0.0.0 SMTP_PORT=25   # and let port 25 through the firewall'

/**
 * Judges whether other mail hosts can reach the SMTP listener at one public address of this service. This machine
 * itself makes the test.
 * @param local tells whether the SMTP listener responds at SMTP_HOST and SMTP_PORT. Null means that the process does
 * not know SMTP_HOST and SMTP_PORT, because the SMTP listener runs on another machine.
 */
export function judgeListener({
  address,
  port,
  reached,
  local,
}: {
  address: string
  port: number
  reached: Reached
  local: { at: string; reached: Reached } | null
}): Finding {
  const check = `listener at ${address}`
  if (reached === 'answered') return ok(check, `it answers on port ${port}, seen from here`)
  if (reached === 'refused') {
    const found =
      local?.reached === 'answered'
        ? `nothing listens on port ${port}; the listener is at ${local.at}`
        : `nothing listens on port ${port}`
    return broken(check, found, INBOUND_FIX)
  }
  const found =
    reached === 'silent'
      ? `no answer on port ${port}: a firewall drops it, or the network does not lead back here`
      : `there is no way to port ${port}`
  // Many networks do not route a packet to their own public address. Therefore only a host outside the network can tell
  // for certain whether the SMTP port is reachable.
  const fix = `nc -vz ${address} ${port}   # from elsewhere; if it is shut, ask the provider to open it, or set INBOUND_SECRETS for mail over HTTP`
  return local?.reached === 'answered' ? warning(check, found, fix) : broken(check, found, fix)
}

const TLS_FIX = 'SMTP_TLS_CERT_FILE=/etc/purser/cert.pem SMTP_TLS_KEY_FILE=/etc/purser/key.pem'

/**
 * Judges whether the SMTP listener offers STARTTLS. Another function judges the certificate of the SMTP listener.
 * @param isDemanded tells whether an MTA-STS policy demands STARTTLS.
 */
export function judgeStartTls(isOffered: boolean, isDemanded = false): Finding {
  if (isOffered) return ok('STARTTLS', 'the listener offers it')
  const found = 'the listener does not offer it'
  return isDemanded
    ? broken('STARTTLS', `${found}: senders that follow MTA_STS=enforce deliver no mail`, TLS_FIX)
    : warning('STARTTLS', `${found}: mail comes in readable`, TLS_FIX)
}

/**
 * Judges whether inboxes exist for the report addresses in this service's DNS records. The parameter `refused` lists
 * the report addresses without an inbox.
 */
export const judgeReportAddresses = (refused: readonly string[], mailDomain: string): Finding =>
  refused.length === 0
    ? ok('reports', 'an inbox takes them')
    : warning(
        'reports',
        `mail to ${refused.join(' and ')} is refused`,
        `POSTMASTER=operator@${mailDomain}   # an inbox of yours`,
      )

/** Reports the projects that have inboxes at addresses reserved for the operator, such as `postmaster`. */
export function judgeReservedNames(
  taken: readonly { address: string; projectId: string; name: string }[],
): Finding[] {
  if (taken.length === 0) return [ok('kept names', 'no project holds one')]
  return taken.map(({ address, projectId, name }) =>
    warning(
      address,
      `the inbox of the project ${shown(name)} (${projectId})`,
      `curl -X DELETE -H "Authorization: Bearer $PLATFORM_KEY" $BASE_URL/v0/platform/projects/${projectId}`,
    ),
  )
}
