import { isIP } from 'node:net'
import { isPublicAddress } from '../../../../shared/http/publicAddress.ts'
import { allowsHost, type MtaStsPolicy } from '../../../../shared/mail/mtaSts.ts'
import type { Dns } from '../../dns.ts'

/** Describes one address of a host that accepts mail for a domain. */
export type MailHost = { name: string; address: string }

/**
 * Holds the mail hosts of a domain, or the error of the search for mail hosts. The error is permanent or temporary. The
 * sender of the mail can read the text of this error.
 */
export type MailHosts =
  | { kind: 'hosts'; hosts: MailHost[] }
  | { kind: 'none'; error: string; leadsHere?: true }
  | { kind: 'unknown'; error: string }

export type MailHostsOptions = {
  dns: Dns
  /**
   * Holds the host name of this service. The code needs this name, because mail to a domain whose MX record names this
   * host would loop.
   */
  ownName: string
  /** Allows mail hosts at private addresses, which the service needs in development. */
  allowPrivate: boolean
}

/**
 * Limits how many host addresses are tried for one mail, and so the time of the delivery to one domain. RFC 5321 §5.1
 * demands that the service tries at least two host addresses.
 */
const ADDRESSES_MAX = 6
const ADDRESSES_PER_HOST_MAX = 3
const EXCHANGERS_MAX = 10

const none = (error: string): MailHosts => ({ kind: 'none', error })

const LEADS_HERE: MailHosts = {
  ...{ kind: 'none', leadsHere: true },
  error: '550 5.4.6 The mail exchangers of the domain lead back here',
}

const UNKNOWN: MailHosts = {
  kind: 'unknown',
  error: '450 4.4.3 The mail exchangers of the domain cannot be found out now',
}

/**
 * If the MTA-STS policy of a domain names none of the domain's MX hosts, mail to this domain is deferred. The owner of
 * the domain may still correct the policy or the MX records (RFC 8461 §5).
 */
const NO_HOST_OF_POLICY: MailHosts = {
  kind: 'unknown',
  error: '451 4.7.5 No mail exchanger of the domain is named by its MTA-STS policy',
}

/**
 * Finds the mail hosts of a domain (RFC 5321 §5.1): the mail exchangers of the domain, ordered by preference. Mail
 * exchangers with equal preference come in random order. A domain without an MX record is its own mail host (implicit
 * MX). A domain with a null MX has no mail host (RFC 7505). If the domain has an MTA-STS policy of the mode `enforce`,
 * only the mail exchangers that the policy names count.
 *
 * The owner of a domain chooses its mail hosts, and thereby the addresses to which this service connects. Therefore
 * mail is sent only to public addresses. Otherwise a tenant could reach the network of this machine by mail.
 */
export async function findMailHosts(
  domain: string,
  {
    dns,
    ownName,
    allowPrivate,
    policy = null,
  }: MailHostsOptions & { policy?: MtaStsPolicy | null },
): Promise<MailHosts> {
  const exchangers = await dns.mx(domain).catch(() => null)
  if (exchangers === null) return UNKNOWN
  if (exchangers.length === 1 && isRoot(exchangers[0]!.exchange)) {
    return none('556 5.1.10 The domain accepts no mail (null MX)')
  }
  const all = exchangers.length === 0 ? [domain] : inOrder(exchangers, ownName)
  if (all.length === 0) return LEADS_HERE
  // The limit on mail hosts counts only hosts that may get the mail. Otherwise other hosts could displace a host that
  // the MTA-STS policy names.
  const allowed = policy?.mode === 'enforce' ? all.filter((name) => allowsHost(policy, name)) : all
  const names = allowed.slice(0, EXCHANGERS_MAX)
  const answers = await Promise.allSettled(
    names.map(async (name) => ({ name, addresses: await addressesOf(dns, name) })),
  )
  const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
  const hosts = found.flatMap(({ name, addresses }) =>
    addresses
      .filter((address) => allowPrivate || isPublicAddress(address))
      .slice(0, ADDRESSES_PER_HOST_MAX)
      .map((address) => ({ name, address })),
  )
  if (hosts.length > 0) return { kind: 'hosts', hosts: hosts.slice(0, ADDRESSES_MAX) }
  // A mail exchanger whose DNS lookup failed may be the only one that accepts the mail, so its error is reported.
  if (found.length < names.length) return UNKNOWN
  if (allowed.length < all.length) return NO_HOST_OF_POLICY
  if (found.some(({ addresses }) => addresses.length > 0)) {
    return none('550 5.4.4 The mail exchangers of the domain have no public address')
  }
  return exchangers.length === 0
    ? none('550 5.1.2 The domain does not exist, or has no host that takes mail')
    : none('550 5.4.4 The mail exchangers of the domain have no address')
}

/**
 * Returns the addresses of a mail exchanger. Some MX records contain an address instead of a host name. The service
 * checks an address in an MX record in the same way as a resolved address.
 */
const addressesOf = async (dns: Dns, name: string): Promise<string[]> =>
  isIP(name) === 0 ? await dns.addresses(name) : [name]

const isRoot = (exchange: string): boolean => exchange === '' || exchange === '.'

/**
 * Returns the mail exchangers in the order of their preference. If this service is itself a mail exchanger of the
 * domain, returns only the exchangers with a better preference than this service (RFC 5321 §5.1).
 */
function inOrder(exchangers: { priority: number; exchange: string }[], ownName: string): string[] {
  const usable = exchangers.filter(({ exchange }) => !isRoot(exchange))
  const own = usable.find(({ exchange }) => plain(exchange) === plain(ownName))
  return usable
    .filter(({ priority }) => own === undefined || priority < own.priority)
    .map((exchanger) => ({ ...exchanger, lot: Math.random() }))
    .sort((a, b) => a.priority - b.priority || a.lot - b.lot)
    .map(({ exchange }) => plain(exchange))
}

const plain = (name: string): string => name.toLowerCase().replace(/\.$/, '')
